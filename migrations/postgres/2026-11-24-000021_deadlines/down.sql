alter table batch_payloads drop column deadline;
