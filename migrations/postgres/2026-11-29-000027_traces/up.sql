-- The trace of the request that the batch was sent with: the headers traceparent and tracestate, separated by a space.
alter table batches add column trace text collate "C";
