begin;
CREATE TABLE __diesel_schema_migrations (
       version VARCHAR(50) PRIMARY KEY NOT NULL,
       run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE services (
    service_id text primary key,
    last_created_at integer not null,
    added integer not null
) strict, without rowid;
CREATE TABLE ledger (
    id integer primary key check (id = 1),
    kind text not null,
    identity text not null,
    name text not null,
    recorded_at integer not null,
    highest_block integer
) strict;
CREATE TABLE instances (
    instance_id text primary key,
    name text unique,
    expiry_1 integer not null,
    expiry_2 integer not null,
    ledger_id integer references ledger on delete set null,
    renewals integer not null default 0,
    paused integer not null default 0 check (paused in (0, 1)),
    draining integer not null default 0 check (draining in (0, 1)),
    check (expiry_1 <= expiry_2)
) strict, without rowid;
CREATE TABLE database_state (
    id integer primary key check (id = 1),
    server text,
    timeline integer,
    synchronous integer not null default 0 check (synchronous in (0, 1)),
    registrations integer not null default 0,
    restored_at integer,
    restored_reason text,
    restored_seq integer,
    retention_at integer,
    paused_at integer,
    check ((restored_at is null) = (restored_seq is null)),
    check ((restored_at is null) = (restored_reason is null))
) strict;
CREATE TABLE service_id_claims (
    service_id text primary key references services,
    claimant text references instances on delete set null,
    epoch integer not null default 0,
    paused_at integer
, states_differ_at integer) strict, without rowid;
CREATE TABLE new_services (
    service_id text primary key references services,
    signer blob not null check (length(signer) = 33)
) strict, without rowid;
CREATE TABLE batches (
    seq integer primary key autoincrement,
    service_id text not null,
    batch_id blob not null check (length(batch_id) between 1 and 128),
    created_at integer not null,
    ended_at integer,
    dlt_status text check (dlt_status in ('INVALID', 'COMMITTED')),
    attempts integer not null default 0,
    submitted_at integer,
    checked_at integer,
    last_error text,
    label text,
    unique (batch_id, service_id),
    unique (service_id, created_at),
    check ((ended_at is null) = (dlt_status is null))
) strict;
CREATE TABLE client_batches (
    batch_seq integer primary key,
    client text not null check (client <> '')
) strict;
CREATE TABLE batch_payloads (
    batch_seq integer primary key,
    declared_access blob,
    serialized_batch blob not null
, deadline text) strict;
CREATE TABLE transactions (
    batch_seq integer not null,
    position integer not null,
    transaction_id blob not null check (length(transaction_id) between 1 and 128),
    primary key (batch_seq, position)
) strict, without rowid;
CREATE TABLE transaction_receipts (
    batch_seq integer not null references batches on delete cascade,
    position integer not null,
    transaction_id blob,
    error_message text not null,
    error_data blob not null,
    primary key (batch_seq, position)
) strict, without rowid;
CREATE TABLE commits_after_invalid (
    batch_seq integer primary key references batches on delete cascade,
    reported_at integer not null,
    source text not null
) strict;
CREATE TABLE submission_attempts (
    batch_seq integer not null references batches on delete cascade,
    attempt integer not null,
    submitted_at integer,
    ended_at integer not null,
    outcome text not null,
    error text,
    next_try_at integer,
    primary key (batch_seq, attempt)
) strict, without rowid;
CREATE TABLE lanes (
    service_id text not null references services,
    lane integer not null,
    epoch integer not null default 0,
    ended integer not null default 0,
    last_committed_seq integer,
    batch_seq integer,
    batch_id blob,
    created_at integer,
    position integer,
    blocker_seq integer,
    submitted integer not null default 0 check (submitted in (0, 1)),
    dlt_status text,
    commit_proven integer not null default 0 check (commit_proven in (0, 1)),
    earlier_may_arrive integer not null default 0 check (earlier_may_arrive in (0, 1)),
    invalid_reported integer not null default 0 check (invalid_reported in (0, 1)),
    attempts integer not null default 0,
    submitted_at integer,
    since integer,
    checked_at integer,
    next_try_at integer,
    delays integer not null default 0,
    delayed_since integer,
    refusals integer not null default 0,
    not_accepted integer not null default 0,
    last_error text,
    held_at integer,
    held_reason text,
    held_until_decision integer not null default 0 check (held_until_decision in (0, 1)),
    busy integer not null generated always as (batch_seq is not null) stored, pool_parked integer not null default 0, by_pool integer not null default 0,
    primary key (service_id, lane),
    check ((batch_seq is null) = (batch_id is null) and (batch_seq is null) = (created_at is null)),
    check (
        dlt_status is null
        or dlt_status = 'UNKNOWN'
        or (dlt_status = 'DELAYED' and not submitted)
        or (dlt_status in ('PENDING', 'VALID') and submitted)
    ),
    check (not commit_proven or (submitted and dlt_status is null)),
    check (not invalid_reported or (submitted and dlt_status is not null)),
    check ((held_at is null) = (held_reason is null)),
    check (held_at is not null or not held_until_decision),
    check (
        held_at is null or held_until_decision or (submitted and dlt_status is not null)
    ),
    check (batch_seq is not null or (not submitted and dlt_status is null))
) strict, without rowid;
CREATE TABLE waiting_holds (
    batch_seq integer primary key references batches on delete cascade,
    held_at integer not null,
    held_reason text not null,
    cause text not null check (cause in ('OPERATOR', 'MISSING_TRANSACTION'))
) strict;
CREATE TABLE waiting_batches (
    batch_seq integer primary key references batches on delete cascade,
    service_id text not null,
    position integer,
    blocker_seq integer,
    depends_on_blocker integer not null default 0 check (depends_on_blocker in (0, 1)),
    check (position is not null or blocker_seq is null),
    check (blocker_seq is not null or not depends_on_blocker)
) strict;
CREATE TABLE declared_addresses (
    service_id text not null,
    address text not null,
    kind integer not null check (kind between 0 and 3),
    position integer not null,
    batch_seq integer not null,
    primary key (service_id, address, kind, position)
) strict, without rowid;
CREATE TABLE address_lengths (
    service_id text not null references services,
    length integer not null,
    since integer not null,
    primary key (service_id, length)
) strict, without rowid;
CREATE TABLE missing_transactions (
    transaction_id blob not null check (length(transaction_id) between 1 and 128),
    batch_seq integer not null references batches on delete cascade,
    service_id text not null,
    since integer not null,
    asked_at integer not null default 0,
    found_at integer,
    overdue integer not null default 0 check (overdue in (0, 1)),
    invalid_seq integer, signer blob not null default x'',
    primary key (transaction_id, batch_seq)
) strict, without rowid;
CREATE TABLE changed_blockers (
    batch_seq integer primary key references batches on delete cascade,
    changed_at integer not null
) strict;
CREATE TABLE halts (
    batch_seq integer primary key references batches on delete cascade,
    service_id text not null references services,
    position integer not null,
    since integer not null,
    ends_until integer,
    origin text not null check (origin in ('POLICY', 'COMMAND', 'FOLLOWING')),
    positioned integer not null check (positioned in (0, 1))
) strict;
CREATE TABLE rewards (
    reward_id blob primary key check (length(reward_id) = 16),
    pool text not null,
    amount text not null,
    once_per_member integer not null check (once_per_member in (0, 1)),
    created_at integer not null
) strict, without rowid;
CREATE TABLE withdrawals (
    seq integer primary key autoincrement,
    withdrawal_id blob not null unique check (length(withdrawal_id) = 16),
    service_id text not null references services,
    kind text not null check (kind in ('propose', 'claim', 'give')),
    reward_id blob references rewards,
    pool text not null,
    beneficiary text not null,
    amount text not null,
    generation integer not null default 1 check (generation > 0),
    batch_seq integer not null unique references batches,
    created_at integer not null,
    cancelled_at integer,
    list_state text not null default 'OPEN'
        check (list_state in ('OPEN', 'COMMITTED', 'INVALID')),
    counted_at integer, idempotency_key text,
    check ((kind = 'propose') = (reward_id is null))
) strict;
CREATE TABLE payment_sums (
    pool text not null,
    started_at integer not null,
    amount text not null,
    primary key (pool, started_at)
) strict, without rowid;
CREATE TABLE last_failures (
    service_id text not null references services,
    pool text not null,
    withdrawal_seq integer not null,
    batch_seq integer not null,
    failed_at integer not null,
    primary key (service_id, pool)
) strict, without rowid;
CREATE TABLE account_nonces (
    service_id text not null references services,
    nonce integer not null check (nonce >= 0),
    withdrawal_seq integer references withdrawals,
    generation integer,
    assigned_at integer not null,
    note text,
    foreign_hash blob check (length(foreign_hash) = 32),
    outcome text check (outcome in ('WITHDRAWN', 'REVERTED', 'CANCELLED', 'USED_ELSEWHERE')),
    pool_withdrawal_id text,
    undecided integer not null default 0 check (undecided in (0, 1)), mined_hash blob check (length(mined_hash) = 32), block_number integer, gas_used integer, gas_price integer,
    primary key (service_id, nonce),
    check ((withdrawal_seq is null) = (generation is null)),
    check ((coalesce(outcome, '') = 'WITHDRAWN') = (pool_withdrawal_id is not null)),
    check (not undecided or outcome is null)
) strict, without rowid;
CREATE TABLE signed_transactions (
    service_id text not null,
    nonce integer not null,
    position integer not null,
    hash blob not null unique check (length(hash) = 32),
    bytes blob not null,
    max_fee integer not null,
    tip integer not null,
    is_filler integer not null check (is_filler in (0, 1)),
    signed_at integer not null,
    sent_at integer,
    last_error text,
    adopted integer not null default 0 check (adopted in (0, 1)),
    primary key (service_id, nonce, position),
    foreign key (service_id, nonce) references account_nonces,
    check (tip between 0 and max_fee)
) strict, without rowid;
CREATE TABLE operator_actions (
    id integer primary key autoincrement,
    acted_at integer not null,
    operator text not null,
    source text not null check (source in ('http', 'command_line', 'program')),
    instance text,
    verb text not null,
    target text not null check (target in ('batch', 'service', 'all_services', 'instance')),
    service_id text,
    batch_id blob check (length(batch_id) between 1 and 128),
    attempt integer,
    target_instance text,
    reason text,
    state_before text not null,
    state_after text not null
) strict;
CREATE TABLE event_groups (
    seq integer primary key,
    xid integer,
    at integer not null,
    instance text,
    batch_seqs blob not null
) strict;
CREATE TABLE batch_events (
    batch_seq integer not null,
    group_seq integer not null,
    at integer not null,
    position integer not null,
    attempt integer not null,
    kind integer not null,
    state integer not null,
    detail text,
    primary key (batch_seq, group_seq, position)
) strict, without rowid;
CREATE TABLE event_feed (
    id integer primary key check (id = 1),
    generation integer not null default 0,
    removed_seq integer not null default 0,
    removed_xid integer not null default 0
) strict;
CREATE TABLE webhooks (
    id integer primary key autoincrement,
    url text not null,
    secret blob not null,
    services text not null,
    kinds text not null,
    created_at integer not null,
    cursor text not null,
    lease integer not null default 0,
    leased_until integer not null default 0,
    attempts integer not null default 0,
    next_try_at integer not null default 0,
    last_error text,
    disabled_at integer,
    missed_at integer
) strict;
CREATE TABLE failed_deliveries (
    id integer primary key autoincrement,
    webhook_id integer not null references webhooks on delete cascade,
    message_id text not null,
    body text not null,
    attempts integer not null,
    error text not null,
    failed_at integer not null,
    again integer not null default 0 check (again in (0, 1))
) strict;
CREATE TABLE tokens (
    token_id text primary key check (length(token_id) = 16),
    name text not null check (name <> ''),
    secret_hash blob not null check (length(secret_hash) = 32),
    scopes text not null check (scopes <> ''),
    services text not null check (services <> ''),
    created_at integer not null,
    expires_at integer,
    last_used_at integer,
    revoked_at integer
) strict, without rowid;
CREATE TABLE transaction_lookups (
    service_id text not null,
    signer blob not null,
    transaction_id blob not null check (length(transaction_id) between 1 and 128),
    since integer not null,
    lookups integer not null default 0,
    next_lookup_at integer not null default 0,
    primary key (service_id, signer, transaction_id)
) strict, without rowid;
CREATE TABLE service_histories (
    service_id text primary key,
    is_known integer check (is_known in (0, 1))
) strict, without rowid;
CREATE TABLE past_transactions (transaction_key blob primary key) strict, without rowid;
CREATE TABLE declared_new_batches (batch_seq integer primary key) strict;
insert into __diesel_schema_migrations (version, run_on) values ('20261121000001', '2026-11-27 07:23:18');
insert into __diesel_schema_migrations (version, run_on) values ('20261123000002', '2026-11-27 07:23:18');
insert into __diesel_schema_migrations (version, run_on) values ('20261123000005', '2026-11-27 07:23:18');
insert into __diesel_schema_migrations (version, run_on) values ('20261124000008', '2026-11-27 07:23:18');
insert into __diesel_schema_migrations (version, run_on) values ('20261124000009', '2026-11-27 07:23:18');
insert into __diesel_schema_migrations (version, run_on) values ('20261124000012', '2026-11-27 07:23:18');
insert into __diesel_schema_migrations (version, run_on) values ('20261124000013', '2026-11-27 07:23:18');
insert into __diesel_schema_migrations (version, run_on) values ('20261124000020', '2026-11-27 07:23:18');
insert into __diesel_schema_migrations (version, run_on) values ('20261124000021', '2026-11-27 07:23:18');
insert into services (service_id, last_created_at, added) values ('global', 1795764199885590, 8);
insert into ledger (id, kind, identity, name, recorded_at, highest_block) values (1, 'sawtooth', 'genesis block 07070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707', 'test', 1795764198855515, NULL);
insert into instances (instance_id, name, expiry_1, expiry_2, ledger_id, renewals, paused, draining) values ('14f342a922a2c041c31f989b1052e738', NULL, 1795764202966000, 1795764207966000, 1, 7, 0, 0);
insert into database_state (id, server, timeline, synchronous, registrations, restored_at, restored_reason, restored_seq, retention_at, paused_at) values (1, NULL, NULL, 0, 1, NULL, NULL, NULL, NULL, NULL);
insert into service_id_claims (service_id, claimant, epoch, paused_at, states_differ_at) values ('global', '14f342a922a2c041c31f989b1052e738', 1, NULL, NULL);
insert into batches (seq, service_id, batch_id, created_at, ended_at, dlt_status, attempts, submitted_at, checked_at, last_error, label) values (1, 'global', X'8116288BA6589DA632E88F5128598D61172536E46E8B1050E8281F6ACE038B1E527859860AF6BE6F06E310613B11103D015BA998302DB94351E9832011DBC0A3', 1795764199243208, 1795764199529948, 'INVALID', 1, 1795764199289166, 1795764199529948, NULL, NULL);
insert into batches (seq, service_id, batch_id, created_at, ended_at, dlt_status, attempts, submitted_at, checked_at, last_error, label) values (2, 'global', X'F4D34E061F6B6BB0581645A4A239B4140A0D2015851237CE835D118036AA5ACB5A12F2A38D430C4F2C62FEBC8BA5A3C914C68662C0551BE713848002E53BB24D', 1795764199243209, 1795764199694470, 'COMMITTED', 1, 1795764199589124, 1795764199694470, NULL, NULL);
insert into batches (seq, service_id, batch_id, created_at, ended_at, dlt_status, attempts, submitted_at, checked_at, last_error, label) values (3, 'global', X'1FA338178A684AF93AAF4CAC8FE8E8E83D0F448D65F8C5ED9CFC49B019A02856368EE13D718CB0BB70E696E3491FCB405E6D9D88E1B3F362217A46BAD7E243E9', 1795764199243210, 1795764199774001, 'COMMITTED', 1, 1795764199733952, 1795764199774001, NULL, NULL);
insert into batches (seq, service_id, batch_id, created_at, ended_at, dlt_status, attempts, submitted_at, checked_at, last_error, label) values (4, 'global', X'2E0193956C51D162BB005539196220386AEC249FBCD25DB703308A2960D8DF13639DBF517BD9CA0B4401350A21E87801D44DCF69D8AB4E2537B578FC30CCE11B', 1795764199805711, NULL, NULL, 0, NULL, NULL, NULL, NULL);
insert into batches (seq, service_id, batch_id, created_at, ended_at, dlt_status, attempts, submitted_at, checked_at, last_error, label) values (5, 'global', X'AC570ED57DFDCD0E6A945EB2A550B77085330BE8EECBE85FA4A1495DD9EADB1361833EC1DE14C0B42D66D432AB7EE1A69798F9E1C3F0E6BE9C91795FD408624E', 1795764199805712, NULL, NULL, 0, NULL, NULL, NULL, NULL);
insert into batches (seq, service_id, batch_id, created_at, ended_at, dlt_status, attempts, submitted_at, checked_at, last_error, label) values (6, 'global', X'EB8285E18FFE6873AD2FA8B52EAAD4389CE0720E188F6F27E13158A3D380C91A047EA039EFAC109348506ABE8FF72946072D2F050470A58A8DA4C302D8369EDB', 1795764199805713, NULL, NULL, 0, NULL, NULL, NULL, NULL);
insert into batches (seq, service_id, batch_id, created_at, ended_at, dlt_status, attempts, submitted_at, checked_at, last_error, label) values (7, 'global', X'FB93D6ACD2D9141C45D652E85EE490C0E66B7C61EBACA0711B6D9A9991AC00EF5A4A0896717EE60FC514A5F57E744EF6625407235AEFA306C0E9C810F3BE5E80', 1795764199805714, NULL, NULL, 0, NULL, NULL, NULL, NULL);
insert into batches (seq, service_id, batch_id, created_at, ended_at, dlt_status, attempts, submitted_at, checked_at, last_error, label) values (8, 'global', X'DDDBF4F5CCC09CBA7CC7FABB8547AD543EAAA280F8F5B882B320C16AF6FD46573CBC2BD0FAA8C99B2C62B954DE8A5A5F1FA73857B656FDD70C5C757D28846FC4', 1795764199885590, NULL, NULL, 0, NULL, NULL, NULL, NULL);
insert into batch_payloads (batch_seq, declared_access, serialized_batch, deadline) values (1, X'010000000000000001027E5700000000', X'0AC7010A42303334636163306233393730306231643033633233383063313766353065666432326432303539383363653536636339633536383536643236623531313433326632128001626137326464616130626666393537616130643434616664653736366264396265386634306263306666363063396637346439373631346239613836663230313761333266633834333365373365623530373563393138356134613130393265306232633234396132306361326364303631636131656437383637326636643312800138313136323838626136353839646136333265383866353132383539386436313137323533366534366538623130353065383238316636616365303338623165353237383539383630616636626536663036653331303631336231313130336430313562613939383330326462393433353165393833323031316462633061331AC3030AAC020A423033346361633062333937303062316430336332333830633137663530656664323264323035393833636535366363396335363835366432366235313134333266321A04746573742203312E302A04376535373208676C6F62616C2F303A04376535374A80016336633762346561373935326466303865656164666166356265616363343238653834633037333165656632316465313964383832653132646165326531326239353265633237623037333763396435313137353562663439386365306333646535646331306335653333353431306138363836626234646438666133613435524230333463616330623339373030623164303363323338306331376635306566643232643230353938336365353663633963353638353664323662353131343332663212800162613732646461613062666639353761613064343461666465373636626439626538663430626330666636306339663734643937363134623961383666323031376133326663383433336537336562353037356339313835613461313039326530623263323439613230636132636430363163613165643738363732663664331A0F73657420676C6F62616C20746F2030', NULL);
insert into batch_payloads (batch_seq, declared_access, serialized_batch, deadline) values (2, X'010000000000000001027E5700000000', X'0AC7010A42303334636163306233393730306231643033633233383063313766353065666432326432303539383363653536636339633536383536643236623531313433326632128001383339333935656435313061346330313462393334633661613934346633633437383737666538656166666132363963323936623834313131623763323266623030343333353764393533656534376630633138326636323364643330666439343363666432393438636537653466393032333430643561653930326333343712800166346433346530363166366236626230353831363435613461323339623431343061306432303135383531323337636538333564313138303336616135616362356131326632613338643433306334663263363266656263386261356133633931346336383636326330353531626537313338343830303265353362623234641AC3030AAC020A423033346361633062333937303062316430336332333830633137663530656664323264323035393833636535366363396335363835366432366235313134333266321A04746573742203312E302A04376535373208676C6F62616C2F313A04376535374A80013930623064623662343835363137353263633361643664643830333962643631326265313438343435316463663639613030626233633730393031333636326664613966643134383834303534333031366465383866326561623938343662313634323033636539323436363562666339646465346331316666626564616562524230333463616330623339373030623164303363323338306331376635306566643232643230353938336365353663633963353638353664323662353131343332663212800138333933393565643531306134633031346239333463366161393434663363343738373766653865616666613236396332393662383431313162376332326662303034333335376439353365653437663063313832663632336464333066643934336366643239343863653765346639303233343064356165393032633334371A0F73657420676C6F62616C20746F2031', NULL);
insert into batch_payloads (batch_seq, declared_access, serialized_batch, deadline) values (3, X'010000000000000001027E5700000000', X'0AC7010A42303334636163306233393730306231643033633233383063313766353065666432326432303539383363653536636339633536383536643236623531313433326632128001313932373361336162643832393261393433366531313862313437636361313231313838666133386235646366626566346561393636393735356431393037663239633861623263313935333436316465613366353766316363313564313037393865626437633234313432636563633639376535646366633361663164316312800131666133333831373861363834616639336161663463616338666538653865383364306634343864363566386335656439636663343962303139613032383536333638656531336437313863623062623730653639366533343931666362343035653664396438386531623366333632323137613436626164376532343365391AC3030AAC020A423033346361633062333937303062316430336332333830633137663530656664323264323035393833636535366363396335363835366432366235313134333266321A04746573742203312E302A04376535373208676C6F62616C2F323A04376535374A80013865306438356236323565386433626539346365316466663133613066353835343432353439396564653065653530643165323731313634653766386464363661636162336436633266333136396462626231393134346164343535313035663134303235656562666265363361643865306563393436663432363763353736524230333463616330623339373030623164303363323338306331376635306566643232643230353938336365353663633963353638353664323662353131343332663212800131393237336133616264383239326139343336653131386231343763636131323131383866613338623564636662656634656139363639373535643139303766323963386162326331393533343631646561336635376631636331356431303739386562643763323431343263656363363937653564636663336166316431631A0F73657420676C6F62616C20746F2032', NULL);
insert into batch_payloads (batch_seq, declared_access, serialized_batch, deadline) values (4, X'010000000000000001027E5700000000', X'0AC7010A42303334636163306233393730306231643033633233383063313766353065666432326432303539383363653536636339633536383536643236623531313433326632128001313063306366383161386631336531353037366439373232393238653434356530666336393933363166626130623863373234386337663139353861383933653036383136643761633436363330396633373938663362393238356133323435313534663735386534393138623034633864353833353435326162303237656112800132653031393339353663353164313632626230303535333931393632323033383661656332343966626364323564623730333330386132393630643864663133363339646266353137626439636130623434303133353061323165383738303164343464636636396438616234653235333762353738666333306363653131621AC5030AAD020A423033346361633062333937303062316430336332333830633137663530656664323264323035393833636535366363396335363835366432366235313134333266321A04746573742203312E302A04376535373209676C6F62616C2F31303A04376535374A80013431353761393139643438653165316263663930353162666637373736643161353565623262323465393136653961313265373463346465623632363535363237346237386332313533333664646161616563356235363064353464643363313263373766633135316564316437303332626536303163313230333563393764524230333463616330623339373030623164303363323338306331376635306566643232643230353938336365353663633963353638353664323662353131343332663212800131306330636638316138663133653135303736643937323239323865343435653066633639393336316662613062386337323438633766313935386138393365303638313664376163343636333039663337393866336239323835613332343531353466373538653439313862303463386435383335343532616230323765611A1073657420676C6F62616C20746F203130', NULL);
insert into batch_payloads (batch_seq, declared_access, serialized_batch, deadline) values (5, X'010000000000000001027E5700000000', X'0AC7010A42303334636163306233393730306231643033633233383063313766353065666432326432303539383363653536636339633536383536643236623531313433326632128001653363653034613336343162323733343666363534643566613837363534346236323438393662356362356266326161666362393265383730356462353139623437336130383533633032393961323131306365633565353661663834333939653134356465396637366633306365326539646531646663346538353536663212800161633537306564353764666463643065366139343565623261353530623737303835333330626538656563626538356661346131343935646439656164623133363138333365633164653134633062343264363664343332616237656531613639373938663965316333663065366265396339313739356664343038363234651AC5030AAD020A423033346361633062333937303062316430336332333830633137663530656664323264323035393833636535366363396335363835366432366235313134333266321A04746573742203312E302A04376535373209676C6F62616C2F31313A04376535374A80016531386634646561383562333531653838643033623263663933393933653463306637346531313563373762396133343636643433383835633434326633363566626134666561613238613131353562323336633966353933306236393764383466313936366330333835363736383566626362646436633533313062363133524230333463616330623339373030623164303363323338306331376635306566643232643230353938336365353663633963353638353664323662353131343332663212800165336365303461333634316232373334366636353464356661383736353434623632343839366235636235626632616166636239326538373035646235313962343733613038353363303239396132313130636563356535366166383433393965313435646539663736663330636532653964653164666334653835353666321A1073657420676C6F62616C20746F203131', NULL);
insert into batch_payloads (batch_seq, declared_access, serialized_batch, deadline) values (6, X'010000000000000001027E5700000000', X'0AC7010A42303334636163306233393730306231643033633233383063313766353065666432326432303539383363653536636339633536383536643236623531313433326632128001613366326465393466653139623063303834323962343463636164643233353733636466346339653035366330363739393036376136353365376237643736303665373430636439623238316466303662343266663163346461663761313531636438626634626231656531626334303834636238373665623934656364363912800165623832383565313866666536383733616432666138623532656161643433383963653037323065313838663666323765313331353861336433383063393161303437656130333965666163313039333438353036616265386666373239343630373264326630353034373061353861386461346333303264383336396564621AC5030AAD020A423033346361633062333937303062316430336332333830633137663530656664323264323035393833636535366363396335363835366432366235313134333266321A04746573742203312E302A04376535373209676C6F62616C2F31323A04376535374A80013630393637623362626436313230653330383737363739366464353731366331646339663061363163663164346336393437643764633335356662343563303135303336326432323435313231313065653838326234333031633061316631343634656365373564386333623130303035353933353165326631313966333536524230333463616330623339373030623164303363323338306331376635306566643232643230353938336365353663633963353638353664323662353131343332663212800161336632646539346665313962306330383432396234346363616464323335373363646634633965303536633036373939303637613635336537623764373630366537343063643962323831646630366234326666316334646166376131353163643862663462623165653162633430383463623837366562393465636436391A1073657420676C6F62616C20746F203132', NULL);
insert into batch_payloads (batch_seq, declared_access, serialized_batch, deadline) values (7, X'010000000000000001027E5700000000', X'0AC7010A42303334636163306233393730306231643033633233383063313766353065666432326432303539383363653536636339633536383536643236623531313433326632128001306232306133346164393235623865363739323465383732376132336336373963353962396361303762386437376461303666643935323862636562363034643037313662373235633661643064343261306239356437626532613836666533326538663636613065356266643732393366356632323366653138333230626412800166623933643661636432643931343163343564363532653835656534393063306536366237633631656261636130373131623664396139393931616330306566356134613038393637313765653630666335313461356635376537343465663636323534303732333561656661333036633065396338313066336265356538301AC5030AAD020A423033346361633062333937303062316430336332333830633137663530656664323264323035393833636535366363396335363835366432366235313134333266321A04746573742203312E302A04376535373209676C6F62616C2F31333A04376535374A80016464636335306262613738356362376438396665336533353930323536643238633139353331376331653837623831323363343764663130303064633239303166373130663232346235643864353365626632613663386565343438623733313436396662363332373762633365373562383136396534393863383037313330524230333463616330623339373030623164303363323338306331376635306566643232643230353938336365353663633963353638353664323662353131343332663212800130623230613334616439323562386536373932346538373237613233633637396335396239636130376238643737646130366664393532386263656236303464303731366237323563366164306434326130623935643762653261383666653332653866363661306535626664373239336635663232336665313833323062641A1073657420676C6F62616C20746F203133', NULL);
insert into batch_payloads (batch_seq, declared_access, serialized_batch, deadline) values (8, X'010000000000000001027E57000000010C665F69B1656681C1028BB2B57F090835BC1B2A09BAB4B8B955F124D66CFFAC0BA9BBF264B67378202F972189D33438BDDB2B6D901D21EA2C88A58923D81C20', X'0AC7010A42303334636163306233393730306231643033633233383063313766353065666432326432303539383363653536636339633536383536643236623531313433326632128001663533646666653064396339303635396332393834306435316233303664343263326465313032323663313239663135636665616362313465663565343965373536646538653362303135636632626130353736623930326636353363396231336466646161373065633632303031373366333461323335633634373266366112800164646462663466356363633039636261376363376661626238353437616435343365616161323830663866356238383262333230633136616636666434363537336362633262643066616138633939623263363262393534646538613561356631666137333835376236353666646437306335633735376432383834366663341AC8040AB0030A4230333463616330623339373030623164303363323338306331376635306566643232643230353938336365353663633963353638353664323662353131343332663212800130633636356636396231363536363831633130323862623262353766303930383335626331623261303962616234623862393535663132346436366366666163306261396262663236346236373337383230326639373231383964333334333862646462326236643930316432316561326338386135383932336438316332301A04746573742203312E302A04376535373209676C6F62616C2F35313A04376535374A80013531386537326434666538356138633661653364623938393233366435323237633735323536316163316237616136336637363035663363663239633462666162373134373038353932356264613036316266383033336232366133636462636139643738323533643865376131663435633666653961303937383837336363524230333463616330623339373030623164303363323338306331376635306566643232643230353938336365353663633963353638353664323662353131343332663212800166353364666665306439633930363539633239383430643531623330366434326332646531303232366331323966313563666561636231346566356534396537353664653865336230313563663262613035373662393032663635336339623133646664616137306563363230303137336633346132333563363437326636611A1073657420676C6F62616C20746F203531', NULL);
insert into transactions (batch_seq, position, transaction_id) values (1, 0, X'BA72DDAA0BFF957AA0D44AFDE766BD9BE8F40BC0FF60C9F74D97614B9A86F2017A32FC8433E73EB5075C9185A4A1092E0B2C249A20CA2CD061CA1ED78672F6D3');
insert into transactions (batch_seq, position, transaction_id) values (2, 0, X'839395ED510A4C014B934C6AA944F3C47877FE8EAFFA269C296B84111B7C22FB0043357D953EE47F0C182F623DD30FD943CFD2948CE7E4F902340D5AE902C347');
insert into transactions (batch_seq, position, transaction_id) values (3, 0, X'19273A3ABD8292A9436E118B147CCA121188FA38B5DCFBEF4EA9669755D1907F29C8AB2C1953461DEA3F57F1CC15D10798EBD7C24142CECC697E5DCFC3AF1D1C');
insert into transactions (batch_seq, position, transaction_id) values (4, 0, X'10C0CF81A8F13E15076D9722928E445E0FC699361FBA0B8C7248C7F1958A893E06816D7AC466309F3798F3B9285A3245154F758E4918B04C8D5835452AB027EA');
insert into transactions (batch_seq, position, transaction_id) values (5, 0, X'E3CE04A3641B27346F654D5FA876544B624896B5CB5BF2AAFCB92E8705DB519B473A0853C0299A2110CEC5E56AF84399E145DE9F76F30CE2E9DE1DFC4E8556F2');
insert into transactions (batch_seq, position, transaction_id) values (6, 0, X'A3F2DE94FE19B0C08429B44CCADD23573CDF4C9E056C06799067A653E7B7D7606E740CD9B281DF06B42FF1C4DAF7A151CD8BF4BB1EE1BC4084CB876EB94ECD69');
insert into transactions (batch_seq, position, transaction_id) values (7, 0, X'0B20A34AD925B8E67924E8727A23C679C59B9CA07B8D77DA06FD9528BCEB604D0716B725C6AD0D42A0B95D7BE2A86FE32E8F66A0E5BFD7293F5F223FE18320BD');
insert into transactions (batch_seq, position, transaction_id) values (8, 0, X'F53DFFE0D9C90659C29840D51B306D42C2DE10226C129F15CFEACB14EF5E49E756DE8E3B015CF2BA0576B902F653C9B13DFDAA70EC6200173F34A235C6472F6A');
insert into transaction_receipts (batch_seq, position, transaction_id, error_message, error_data) values (1, 0, X'BA72DDAA0BFF957AA0D44AFDE766BD9BE8F40BC0FF60C9F74D97614B9A86F2017A32FC8433E73EB5075C9185A4A1092E0B2C249A20CA2CD061CA1ED78672F6D3', 'The simulated ledger finds this transaction invalid', X'');
insert into submission_attempts (batch_seq, attempt, submitted_at, ended_at, outcome, error, next_try_at) values (7, 0, NULL, 1795764200005025, 'held by an operator', 'look first', NULL);
insert into lanes (service_id, lane, epoch, ended, last_committed_seq, batch_seq, batch_id, created_at, position, blocker_seq, submitted, dlt_status, commit_proven, earlier_may_arrive, invalid_reported, attempts, submitted_at, since, checked_at, next_try_at, delays, delayed_since, refusals, not_accepted, last_error, held_at, held_reason, held_until_decision, pool_parked, by_pool) values ('global', 0, 1, 3, 3, 4, X'2E0193956C51D162BB005539196220386AEC249FBCD25DB703308A2960D8DF13639DBF517BD9CA0B4401350A21E87801D44DCF69D8AB4E2537B578FC30CCE11B', 1795764199805711, 1795764199805711, NULL, 1, NULL, 0, 0, 0, 1, 1795764199867569, 1795764199867569, NULL, NULL, 0, NULL, 0, 0, NULL, NULL, NULL, 0, 0, 0);
insert into waiting_holds (batch_seq, held_at, held_reason, cause) values (7, 1795764200005025, 'held by an operator: look first', 'OPERATOR');
insert into waiting_batches (batch_seq, service_id, position, blocker_seq, depends_on_blocker) values (5, 'global', 1795764199805712, 4, 0);
insert into waiting_batches (batch_seq, service_id, position, blocker_seq, depends_on_blocker) values (6, 'global', 1795764199805713, 5, 0);
insert into waiting_batches (batch_seq, service_id, position, blocker_seq, depends_on_blocker) values (7, 'global', 1795764199805714, 6, 0);
insert into waiting_batches (batch_seq, service_id, position, blocker_seq, depends_on_blocker) values (8, 'global', NULL, NULL, 0);
insert into declared_addresses (service_id, address, kind, position, batch_seq) values ('global', '7e57', 0, 1795764199805711, 4);
insert into declared_addresses (service_id, address, kind, position, batch_seq) values ('global', '7e57', 0, 1795764199805712, 5);
insert into declared_addresses (service_id, address, kind, position, batch_seq) values ('global', '7e57', 0, 1795764199805713, 6);
insert into declared_addresses (service_id, address, kind, position, batch_seq) values ('global', '7e57', 0, 1795764199805714, 7);
insert into address_lengths (service_id, length, since) values ('global', 4, 1795764199243208);
insert into missing_transactions (transaction_id, batch_seq, service_id, since, asked_at, found_at, overdue, invalid_seq, signer) values (X'0C665F69B1656681C1028BB2B57F090835BC1B2A09BAB4B8B955F124D66CFFAC0BA9BBF264B67378202F972189D33438BDDB2B6D901D21EA2C88A58923D81C20', 8, 'global', 1795764199887937, 0, NULL, 0, NULL, X'034CAC0B39700B1D03C2380C17F50EFD22D205983CE56CC9C56856D26B511432F2');
insert into operator_actions (id, acted_at, operator, source, instance, verb, target, service_id, batch_id, attempt, target_instance, reason, state_before, state_after) values (1, 1795764200006294, 'root', 'command_line', NULL, 'hold', 'batch', 'global', X'FB93D6ACD2D9141C45D652E85EE490C0E66B7C61EBACA0711B6D9A9991AC00EF5A4A0896717EE60FC514A5F57E744EF6625407235AEFA306C0E9C810F3BE5E80', NULL, NULL, 'look first', 'new', 'new, held');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (1, NULL, 1795764199249555, '14f342a922a2c041c31f989b1052e738', X'020202');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (2, NULL, 1795764199289166, '14f342a922a2c041c31f989b1052e738', X'02');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (3, NULL, 1795764199425362, '14f342a922a2c041c31f989b1052e738', X'02');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (4, NULL, 1795764199529948, '14f342a922a2c041c31f989b1052e738', X'02');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (5, NULL, 1795764199589124, '14f342a922a2c041c31f989b1052e738', X'04');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (6, NULL, 1795764199624879, '14f342a922a2c041c31f989b1052e738', X'04');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (7, NULL, 1795764199694470, '14f342a922a2c041c31f989b1052e738', X'04');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (8, NULL, 1795764199733952, '14f342a922a2c041c31f989b1052e738', X'06');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (9, NULL, 1795764199751965, '14f342a922a2c041c31f989b1052e738', X'06');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (10, NULL, 1795764199774001, '14f342a922a2c041c31f989b1052e738', X'06');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (11, NULL, 1795764199807859, '14f342a922a2c041c31f989b1052e738', X'08020202');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (12, NULL, 1795764199867569, '14f342a922a2c041c31f989b1052e738', X'08');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (13, NULL, 1795764199887799, '14f342a922a2c041c31f989b1052e738', X'10');
insert into event_groups (seq, xid, at, instance, batch_seqs) values (14, NULL, 1795764200005025, NULL, X'0E');
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (1, 1, 1795764199249555, 0, 0, 0, 0, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (1, 2, 1795764199289166, 0, 1, 1, 1, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (1, 3, 1795764199425362, 0, 1, 2, 5, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (1, 4, 1795764199529948, 0, 1, 3, 7, 'The simulated ledger finds this transaction invalid');
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (2, 1, 1795764199249555, 1, 0, 0, 0, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (2, 5, 1795764199589124, 0, 1, 1, 1, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (2, 6, 1795764199624879, 0, 1, 2, 5, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (2, 7, 1795764199694470, 0, 1, 3, 8, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (3, 1, 1795764199249555, 2, 0, 0, 0, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (3, 8, 1795764199733952, 0, 1, 1, 1, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (3, 9, 1795764199751965, 0, 1, 2, 5, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (3, 10, 1795764199774001, 0, 1, 3, 8, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (4, 11, 1795764199807859, 0, 0, 0, 0, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (4, 12, 1795764199867569, 0, 1, 1, 1, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (5, 11, 1795764199807859, 1, 0, 0, 0, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (6, 11, 1795764199807859, 2, 0, 0, 0, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (7, 11, 1795764199807859, 3, 0, 0, 0, NULL);
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (7, 14, 1795764200005025, 0, 0, 7, 0, 'look first');
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail) values (8, 13, 1795764199887799, 0, 0, 0, 0, NULL);
insert into event_feed (id, generation, removed_seq, removed_xid) values (1, 0, 0, 0);
insert into webhooks (id, url, secret, services, kinds, created_at, cursor, lease, leased_until, attempts, next_try_at, last_error, disabled_at, missed_at) values (1, 'http://127.0.0.1:9/', X'CC10E0F93E1A8F1BFCA7BEF7A11E470A98312BC6DBC328C8', '', '', 1795764198949925, 'e1.0.0-0-0-0', 2, 0, 1, 1795764204115889, 'not sent: no address of the host may be connected to', NULL, NULL);
insert into tokens (token_id, name, secret_hash, scopes, services, created_at, expires_at, last_used_at, revoked_at) values ('f0884b13c09029d8', 'recorded', X'39E43DA66CCC90C15CAE152C4925AE72277FC9DE2357449C5C099750E71C43A1', 'submit', '*', 1795764199165922, 1803540199165862, NULL, NULL);
insert into transaction_lookups (service_id, signer, transaction_id, since, lookups, next_lookup_at) values ('global', X'034CAC0B39700B1D03C2380C17F50EFD22D205983CE56CC9C56856D26B511432F2', X'0C665F69B1656681C1028BB2B57F090835BC1B2A09BAB4B8B955F124D66CFFAC0BA9BBF264B67378202F972189D33438BDDB2B6D901D21EA2C88A58923D81C20', 1795764199887937, 0, 0);
CREATE INDEX service_id_claims_by_claimant on service_id_claims (claimant, service_id);
CREATE INDEX service_id_claims_paused on service_id_claims (service_id) where paused_at is not null;
CREATE INDEX new_services_by_signer on new_services (signer);
CREATE INDEX batches_by_label on batches (label, seq) where label is not null;
CREATE INDEX client_batches_by_client on client_batches (client, batch_seq);
CREATE INDEX transactions_by_id on transactions (substr(transaction_id, 1, 7));
CREATE INDEX lanes_busy on lanes (service_id, lane) where busy;
CREATE UNIQUE INDEX waiting_batches_by_position on waiting_batches (service_id, position)
    where position is not null;
CREATE UNIQUE INDEX waiting_batches_free on waiting_batches (service_id, position)
    where position is not null and blocker_seq is null;
CREATE INDEX waiting_batches_by_blocker on waiting_batches (blocker_seq, position, batch_seq)
    where blocker_seq is not null;
CREATE INDEX waiting_batches_by_service on waiting_batches (service_id, batch_seq);
CREATE INDEX missing_transactions_by_batch on missing_transactions (batch_seq);
CREATE INDEX missing_transactions_to_ask on missing_transactions (asked_at) where found_at is null;
CREATE INDEX missing_transactions_in_time on missing_transactions (since)
    where found_at is null and not overdue;
CREATE INDEX halts_of_commands on halts (service_id) where origin = 'COMMAND';
CREATE INDEX halts_by_service on halts (service_id, position);
CREATE INDEX halts_that_end on halts (service_id, ends_until) where ends_until is not null;
CREATE VIEW batch_statuses as
select b.service_id, b.batch_id,
    case when s.batch_seq is null then b.dlt_status else s.dlt_status end as dlt_status,
    max(b.created_at, coalesce(b.ended_at, 0), coalesce(s.since, 0), coalesce(s.checked_at, 0))
        as updated_at
from batches b left join lanes s on s.service_id = b.service_id and s.batch_seq = b.seq;
CREATE INDEX withdrawals_by_service on withdrawals (service_id, seq);
CREATE INDEX withdrawals_by_service_and_state on withdrawals (service_id, list_state, seq);
CREATE INDEX withdrawals_by_state on withdrawals (list_state, seq);
CREATE INDEX withdrawals_by_pool on withdrawals (pool, list_state, seq);
CREATE INDEX withdrawals_by_beneficiary on withdrawals (beneficiary, list_state, seq);
CREATE INDEX withdrawals_by_reward on withdrawals (reward_id, list_state, seq)
    where reward_id is not null;
CREATE INDEX account_nonces_by_withdrawal on account_nonces (withdrawal_seq, nonce);
CREATE INDEX account_nonces_open on account_nonces (service_id, nonce)
    where coalesce(outcome, '') = '';
CREATE UNIQUE INDEX account_nonces_one_payable on account_nonces (withdrawal_seq)
    where outcome is null or outcome = 'WITHDRAWN';
CREATE INDEX operator_actions_by_operator on operator_actions (operator, id);
CREATE INDEX operator_actions_by_verb on operator_actions (verb, id);
CREATE INDEX operator_actions_by_service on operator_actions (service_id, id) where service_id is not null;
CREATE INDEX operator_actions_by_batch on operator_actions (batch_id, id) where batch_id is not null;
CREATE INDEX event_groups_by_xid on event_groups (xid) where xid is not null;
CREATE INDEX failed_deliveries_of_webhooks on failed_deliveries (webhook_id, id);
CREATE INDEX failed_deliveries_again on failed_deliveries (webhook_id, id) where again;
CREATE UNIQUE INDEX tokens_by_name on tokens (name) where revoked_at is null;
CREATE INDEX service_id_claims_states_differ on service_id_claims (service_id)
    where states_differ_at is not null;
CREATE INDEX missing_transactions_left on missing_transactions (transaction_id, batch_seq)
    where found_at is null;
CREATE INDEX missing_transactions_of_signer on missing_transactions (signer, transaction_id)
    where found_at is null;
CREATE INDEX transaction_lookups_in_turn on transaction_lookups (signer, next_lookup_at);
CREATE INDEX transaction_lookups_not_begun on transaction_lookups (since) where lookups = 0;
CREATE INDEX waiting_batches_incomplete on waiting_batches (service_id) where position is null;
CREATE INDEX account_nonces_without_event on account_nonces (service_id, nonce)
    where pool_withdrawal_id = '';
CREATE INDEX withdrawals_by_idempotency_key on withdrawals (idempotency_key, list_state, seq)
    where idempotency_key is not null;
CREATE INDEX withdrawals_open_by_pool on withdrawals (service_id, pool, batch_seq) where list_state = 'OPEN';
commit;
