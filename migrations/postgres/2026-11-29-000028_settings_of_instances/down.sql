alter table instances drop column settings;
