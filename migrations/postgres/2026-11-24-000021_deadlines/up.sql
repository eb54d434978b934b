-- When the ledger cannot apply the batch any more: "time" or "height", and a number. Null: no such time is known.
alter table batch_payloads add column deadline text collate "C";
