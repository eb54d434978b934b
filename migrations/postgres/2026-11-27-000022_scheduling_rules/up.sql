-- How the batches of services are scheduled, as the instance that registered last has it in its settings: commands on the
-- database follow it. Null: no instance of this release has registered.
alter table database_state add column scheduling text collate "C";
-- Earlier releases left it to a server whether a batch that a command ended as invalid stops others.
update halts set origin = 'POLICY' where origin = 'COMMAND';
