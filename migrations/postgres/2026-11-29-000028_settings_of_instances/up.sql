-- The settings that must be equal on all instances, as an object of JSON: texts by name.
alter table instances add column settings text collate "C";
