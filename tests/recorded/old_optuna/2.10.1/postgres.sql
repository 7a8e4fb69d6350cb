CREATE TYPE public.studydirection AS ENUM (
    'NOT_SET',
    'MINIMIZE',
    'MAXIMIZE'
);
CREATE TYPE public.trialstate AS ENUM (
    'RUNNING',
    'COMPLETE',
    'PRUNED',
    'FAIL',
    'WAITING'
);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.studies (
    study_id integer NOT NULL,
    study_name character varying(512) NOT NULL
);
CREATE SEQUENCE public.studies_study_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.studies_study_id_seq OWNED BY public.studies.study_id;
CREATE TABLE public.study_directions (
    study_direction_id integer NOT NULL,
    direction public.studydirection NOT NULL,
    study_id integer NOT NULL,
    objective integer NOT NULL
);
CREATE SEQUENCE public.study_directions_study_direction_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.study_directions_study_direction_id_seq OWNED BY public.study_directions.study_direction_id;
CREATE TABLE public.study_system_attributes (
    study_system_attribute_id integer NOT NULL,
    study_id integer,
    key character varying(512),
    value_json text
);
CREATE SEQUENCE public.study_system_attributes_study_system_attribute_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.study_system_attributes_study_system_attribute_id_seq OWNED BY public.study_system_attributes.study_system_attribute_id;
CREATE TABLE public.study_user_attributes (
    study_user_attribute_id integer NOT NULL,
    study_id integer,
    key character varying(512),
    value_json text
);
CREATE SEQUENCE public.study_user_attributes_study_user_attribute_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.study_user_attributes_study_user_attribute_id_seq OWNED BY public.study_user_attributes.study_user_attribute_id;
CREATE TABLE public.trial_heartbeats (
    trial_heartbeat_id integer NOT NULL,
    trial_id integer NOT NULL,
    heartbeat timestamp without time zone NOT NULL
);
CREATE SEQUENCE public.trial_heartbeats_trial_heartbeat_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.trial_heartbeats_trial_heartbeat_id_seq OWNED BY public.trial_heartbeats.trial_heartbeat_id;
CREATE TABLE public.trial_intermediate_values (
    trial_intermediate_value_id integer NOT NULL,
    trial_id integer NOT NULL,
    step integer NOT NULL,
    intermediate_value double precision NOT NULL
);
CREATE SEQUENCE public.trial_intermediate_values_trial_intermediate_value_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.trial_intermediate_values_trial_intermediate_value_id_seq OWNED BY public.trial_intermediate_values.trial_intermediate_value_id;
CREATE TABLE public.trial_params (
    param_id integer NOT NULL,
    trial_id integer,
    param_name character varying(512),
    param_value double precision,
    distribution_json text
);
CREATE SEQUENCE public.trial_params_param_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.trial_params_param_id_seq OWNED BY public.trial_params.param_id;
CREATE TABLE public.trial_system_attributes (
    trial_system_attribute_id integer NOT NULL,
    trial_id integer,
    key character varying(512),
    value_json text
);
CREATE SEQUENCE public.trial_system_attributes_trial_system_attribute_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.trial_system_attributes_trial_system_attribute_id_seq OWNED BY public.trial_system_attributes.trial_system_attribute_id;
CREATE TABLE public.trial_user_attributes (
    trial_user_attribute_id integer NOT NULL,
    trial_id integer,
    key character varying(512),
    value_json text
);
CREATE SEQUENCE public.trial_user_attributes_trial_user_attribute_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.trial_user_attributes_trial_user_attribute_id_seq OWNED BY public.trial_user_attributes.trial_user_attribute_id;
CREATE TABLE public.trial_values (
    trial_value_id integer NOT NULL,
    trial_id integer NOT NULL,
    objective integer NOT NULL,
    value double precision NOT NULL
);
CREATE SEQUENCE public.trial_values_trial_value_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.trial_values_trial_value_id_seq OWNED BY public.trial_values.trial_value_id;
CREATE TABLE public.trials (
    trial_id integer NOT NULL,
    number integer,
    study_id integer,
    state public.trialstate NOT NULL,
    datetime_start timestamp without time zone,
    datetime_complete timestamp without time zone
);
CREATE SEQUENCE public.trials_trial_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.trials_trial_id_seq OWNED BY public.trials.trial_id;
CREATE TABLE public.version_info (
    version_info_id integer NOT NULL,
    schema_version integer,
    library_version character varying(256),
    CONSTRAINT version_info_version_info_id_check CHECK ((version_info_id = 1))
);
ALTER TABLE ONLY public.studies ALTER COLUMN study_id SET DEFAULT nextval('public.studies_study_id_seq'::regclass);
ALTER TABLE ONLY public.study_directions ALTER COLUMN study_direction_id SET DEFAULT nextval('public.study_directions_study_direction_id_seq'::regclass);
ALTER TABLE ONLY public.study_system_attributes ALTER COLUMN study_system_attribute_id SET DEFAULT nextval('public.study_system_attributes_study_system_attribute_id_seq'::regclass);
ALTER TABLE ONLY public.study_user_attributes ALTER COLUMN study_user_attribute_id SET DEFAULT nextval('public.study_user_attributes_study_user_attribute_id_seq'::regclass);
ALTER TABLE ONLY public.trial_heartbeats ALTER COLUMN trial_heartbeat_id SET DEFAULT nextval('public.trial_heartbeats_trial_heartbeat_id_seq'::regclass);
ALTER TABLE ONLY public.trial_intermediate_values ALTER COLUMN trial_intermediate_value_id SET DEFAULT nextval('public.trial_intermediate_values_trial_intermediate_value_id_seq'::regclass);
ALTER TABLE ONLY public.trial_params ALTER COLUMN param_id SET DEFAULT nextval('public.trial_params_param_id_seq'::regclass);
ALTER TABLE ONLY public.trial_system_attributes ALTER COLUMN trial_system_attribute_id SET DEFAULT nextval('public.trial_system_attributes_trial_system_attribute_id_seq'::regclass);
ALTER TABLE ONLY public.trial_user_attributes ALTER COLUMN trial_user_attribute_id SET DEFAULT nextval('public.trial_user_attributes_trial_user_attribute_id_seq'::regclass);
ALTER TABLE ONLY public.trial_values ALTER COLUMN trial_value_id SET DEFAULT nextval('public.trial_values_trial_value_id_seq'::regclass);
ALTER TABLE ONLY public.trials ALTER COLUMN trial_id SET DEFAULT nextval('public.trials_trial_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('v2.6.0.a');
INSERT INTO public.studies VALUES (1, 'old');
INSERT INTO public.study_directions VALUES (1, 'MAXIMIZE', 1, 0);
INSERT INTO public.trial_intermediate_values VALUES (1, 1, 0, 8.000077263198765);
INSERT INTO public.trial_intermediate_values VALUES (2, 1, 1, 4.000077263198765);
INSERT INTO public.trial_intermediate_values VALUES (3, 1, 2, 2.6667439298654316);
INSERT INTO public.trial_intermediate_values VALUES (4, 1, 3, 2.000077263198765);
INSERT INTO public.trial_intermediate_values VALUES (5, 1, 4, 1.6000772631987652);
INSERT INTO public.trial_intermediate_values VALUES (6, 2, 0, 1.0000563488315117);
INSERT INTO public.trial_intermediate_values VALUES (7, 2, 1, 0.5000563488315117);
INSERT INTO public.trial_intermediate_values VALUES (8, 2, 2, 0.333389682164845);
INSERT INTO public.trial_intermediate_values VALUES (9, 2, 3, 0.2500563488315117);
INSERT INTO public.trial_intermediate_values VALUES (10, 2, 4, 0.2000563488315117);
INSERT INTO public.trial_intermediate_values VALUES (11, 3, 0, 6.0001528691078185);
INSERT INTO public.trial_intermediate_values VALUES (12, 3, 1, 3.000152869107818);
INSERT INTO public.trial_intermediate_values VALUES (13, 3, 2, 2.000152869107818);
INSERT INTO public.trial_intermediate_values VALUES (14, 3, 3, 1.500152869107818);
INSERT INTO public.trial_intermediate_values VALUES (15, 3, 4, 1.200152869107818);
INSERT INTO public.trial_intermediate_values VALUES (16, 4, 0, 'Infinity');
INSERT INTO public.trial_intermediate_values VALUES (17, 4, 1, 4.500045967559279);
INSERT INTO public.trial_intermediate_values VALUES (18, 4, 2, 3.000045967559279);
INSERT INTO public.trial_intermediate_values VALUES (19, 4, 3, 2.250045967559279);
INSERT INTO public.trial_intermediate_values VALUES (20, 4, 4, 1.8000459675592793);
INSERT INTO public.trial_intermediate_values VALUES (21, 5, 0, 6.000012351860261);
INSERT INTO public.trial_intermediate_values VALUES (22, 5, 1, 3.000012351860261);
INSERT INTO public.trial_intermediate_values VALUES (23, 5, 2, 2.000012351860261);
INSERT INTO public.trial_intermediate_values VALUES (24, 5, 3, 1.5000123518602608);
INSERT INTO public.trial_intermediate_values VALUES (25, 5, 4, 1.2000123518602608);
INSERT INTO public.trial_intermediate_values VALUES (26, 6, 0, 9.030334186182015);
INSERT INTO public.trial_intermediate_values VALUES (27, 6, 1, 4.530334186182015);
INSERT INTO public.trial_intermediate_values VALUES (28, 6, 2, 3.030334186182016);
INSERT INTO public.trial_intermediate_values VALUES (29, 6, 3, 2.280334186182016);
INSERT INTO public.trial_intermediate_values VALUES (30, 6, 4, 1.8303341861820157);
INSERT INTO public.trial_intermediate_values VALUES (31, 7, 0, 5.0121175926382175);
INSERT INTO public.trial_intermediate_values VALUES (32, 7, 1, 2.512117592638217);
INSERT INTO public.trial_intermediate_values VALUES (33, 7, 2, 1.6787842593048838);
INSERT INTO public.trial_intermediate_values VALUES (34, 7, 3, 1.262117592638217);
INSERT INTO public.trial_intermediate_values VALUES (35, 7, 4, 1.012117592638217);
INSERT INTO public.trial_intermediate_values VALUES (36, 9, 0, 1.0002780953158814);
INSERT INTO public.trial_intermediate_values VALUES (37, 9, 1, 0.5002780953158814);
INSERT INTO public.trial_intermediate_values VALUES (38, 10, 0, 6.000256082406905);
INSERT INTO public.trial_intermediate_values VALUES (39, 10, 1, 3.0002560824069047);
INSERT INTO public.trial_intermediate_values VALUES (40, 10, 2, 2.0002560824069047);
INSERT INTO public.trial_intermediate_values VALUES (41, 10, 3, 1.5002560824069047);
INSERT INTO public.trial_intermediate_values VALUES (42, 10, 4, 1.2002560824069046);
INSERT INTO public.trial_intermediate_values VALUES (43, 11, 0, 1.00024216568701);
INSERT INTO public.trial_intermediate_values VALUES (44, 11, 1, 0.5002421656870101);
INSERT INTO public.trial_intermediate_values VALUES (45, 12, 0, 5.000027825501358);
INSERT INTO public.trial_intermediate_values VALUES (46, 12, 1, 2.5000278255013577);
INSERT INTO public.trial_intermediate_values VALUES (47, 12, 2, 1.6666944921680245);
INSERT INTO public.trial_intermediate_values VALUES (48, 12, 3, 1.2500278255013577);
INSERT INTO public.trial_intermediate_values VALUES (49, 12, 4, 1.0000278255013577);
INSERT INTO public.trial_intermediate_values VALUES (50, 13, 0, 9.00044211419913);
INSERT INTO public.trial_intermediate_values VALUES (51, 13, 1, 4.500442114199129);
INSERT INTO public.trial_intermediate_values VALUES (52, 13, 2, 3.000442114199129);
INSERT INTO public.trial_intermediate_values VALUES (53, 13, 3, 2.250442114199129);
INSERT INTO public.trial_intermediate_values VALUES (54, 13, 4, 1.8004421141991291);
INSERT INTO public.trial_intermediate_values VALUES (55, 14, 0, 9.00027538024418);
INSERT INTO public.trial_intermediate_values VALUES (56, 14, 1, 4.500275380244179);
INSERT INTO public.trial_intermediate_values VALUES (57, 14, 2, 3.0002753802441786);
INSERT INTO public.trial_intermediate_values VALUES (58, 14, 3, 2.2502753802441786);
INSERT INTO public.trial_intermediate_values VALUES (59, 14, 4, 1.8002753802441789);
INSERT INTO public.trial_params VALUES (1, 1, 'lr', 7.726319876517107e-05, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (2, 1, 'depth', 8, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (3, 1, 'optimizer', 1, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (4, 1, 'momentum', 0.29680050157622195, '{"name": "UniformDistribution", "attributes": {"low": 0.0, "high": 1.0}}');
INSERT INTO public.trial_params VALUES (5, 2, 'lr', 5.634883151169031e-05, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (6, 2, 'depth', 1, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (7, 2, 'optimizer', 3, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (8, 3, 'lr', 0.00015286910781809481, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (9, 3, 'depth', 6, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (10, 3, 'optimizer', 1, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (11, 3, 'momentum', 0.14416430065342045, '{"name": "UniformDistribution", "attributes": {"low": 0.0, "high": 1.0}}');
INSERT INTO public.trial_params VALUES (12, 4, 'lr', 4.596755927920725e-05, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (13, 4, 'depth', 9, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (14, 4, 'optimizer', 0, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (15, 5, 'lr', 1.2351860260855013e-05, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (16, 5, 'depth', 6, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (17, 5, 'optimizer', 3, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (18, 6, 'lr', 0.03033418618201575, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (19, 6, 'depth', 9, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (20, 6, 'optimizer', 2, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (21, 7, 'lr', 0.012117592638217153, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (22, 7, 'depth', 5, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (23, 7, 'optimizer', 4, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (24, 8, 'lr', 0.018477397869033334, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (25, 8, 'depth', 6, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (26, 8, 'optimizer', 2, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (27, 9, 'lr', 0.00027809531588142596, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (28, 9, 'depth', 1, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (29, 9, 'optimizer', 1, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (30, 9, 'momentum', 0.795087472921032, '{"name": "UniformDistribution", "attributes": {"low": 0.0, "high": 1.0}}');
INSERT INTO public.trial_params VALUES (31, 10, 'lr', 0.000256082406904615, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (32, 10, 'depth', 6, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (33, 10, 'optimizer', 3, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (34, 11, 'lr', 0.00024216568701002875, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (35, 11, 'depth', 1, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (36, 11, 'optimizer', 2, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (37, 12, 'lr', 2.782550135772065e-05, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (38, 12, 'depth', 5, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (39, 12, 'optimizer', 0, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (40, 13, 'lr', 0.0004421141991290363, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (41, 13, 'depth', 9, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (42, 13, 'optimizer', 0, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_params VALUES (43, 14, 'lr', 0.0002753802441787546, '{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO public.trial_params VALUES (44, 14, 'depth', 9, '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO public.trial_params VALUES (45, 14, 'optimizer', 0, '{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO public.trial_user_attributes VALUES (1, 1, 'seconds', '2.5754399588390355e-05');
INSERT INTO public.trial_user_attributes VALUES (2, 2, 'seconds', '1.8782943837230103e-05');
INSERT INTO public.trial_user_attributes VALUES (3, 3, 'seconds', '5.0956369272698274e-05');
INSERT INTO public.trial_user_attributes VALUES (4, 4, 'seconds', '1.532251975973575e-05');
INSERT INTO public.trial_user_attributes VALUES (5, 5, 'seconds', '4.1172867536183375e-06');
INSERT INTO public.trial_user_attributes VALUES (6, 6, 'seconds', '0.010111395394005249');
INSERT INTO public.trial_user_attributes VALUES (7, 7, 'seconds', '0.004039197546072384');
INSERT INTO public.trial_user_attributes VALUES (8, 8, 'seconds', '0.006159132623011112');
INSERT INTO public.trial_user_attributes VALUES (9, 9, 'seconds', '9.269843862714199e-05');
INSERT INTO public.trial_user_attributes VALUES (10, 10, 'seconds', '8.536080230153834e-05');
INSERT INTO public.trial_user_attributes VALUES (11, 11, 'seconds', '8.072189567000958e-05');
INSERT INTO public.trial_user_attributes VALUES (12, 12, 'seconds', '9.275167119240216e-06');
INSERT INTO public.trial_user_attributes VALUES (13, 13, 'seconds', '0.00014737139970967878');
INSERT INTO public.trial_user_attributes VALUES (14, 14, 'seconds', '9.179341472625154e-05');
INSERT INTO public.trial_values VALUES (1, 1, 0, 1.6000772631987652);
INSERT INTO public.trial_values VALUES (2, 2, 0, 0.2000563488315117);
INSERT INTO public.trial_values VALUES (3, 3, 0, 1.200152869107818);
INSERT INTO public.trial_values VALUES (4, 4, 0, 1.8000459675592793);
INSERT INTO public.trial_values VALUES (5, 5, 0, 1.2000123518602608);
INSERT INTO public.trial_values VALUES (6, 6, 0, 1.8303341861820157);
INSERT INTO public.trial_values VALUES (7, 7, 0, 1.012117592638217);
INSERT INTO public.trial_values VALUES (8, 9, 0, 0.5002780953158814);
INSERT INTO public.trial_values VALUES (9, 10, 0, 1.2002560824069046);
INSERT INTO public.trial_values VALUES (10, 11, 0, 0.5002421656870101);
INSERT INTO public.trial_values VALUES (11, 12, 0, 1.0000278255013577);
INSERT INTO public.trial_values VALUES (12, 13, 0, 1.8004421141991291);
INSERT INTO public.trial_values VALUES (13, 14, 0, 1.8002753802441789);
INSERT INTO public.trials VALUES (1, 0, 1, 'COMPLETE', '2026-11-26 16:09:39.488553', '2026-11-26 16:09:39.928423');
INSERT INTO public.trials VALUES (2, 1, 1, 'COMPLETE', '2026-11-26 16:09:39.971535', '2026-11-26 16:09:40.130087');
INSERT INTO public.trials VALUES (3, 2, 1, 'COMPLETE', '2026-11-26 16:09:40.153331', '2026-11-26 16:09:40.347726');
INSERT INTO public.trials VALUES (4, 3, 1, 'COMPLETE', '2026-11-26 16:09:40.375806', '2026-11-26 16:09:40.559033');
INSERT INTO public.trials VALUES (5, 4, 1, 'COMPLETE', '2026-11-26 16:09:40.604285', '2026-11-26 16:09:40.751565');
INSERT INTO public.trials VALUES (6, 5, 1, 'COMPLETE', '2026-11-26 16:09:40.77643', '2026-11-26 16:09:40.920437');
INSERT INTO public.trials VALUES (7, 6, 1, 'COMPLETE', '2026-11-26 16:09:40.945053', '2026-11-26 16:09:41.088019');
INSERT INTO public.trials VALUES (8, 7, 1, 'FAIL', '2026-11-26 16:09:41.112372', '2026-11-26 16:09:41.17465');
INSERT INTO public.trials VALUES (9, 8, 1, 'PRUNED', '2026-11-26 16:09:41.195565', '2026-11-26 16:09:41.320555');
INSERT INTO public.trials VALUES (10, 9, 1, 'COMPLETE', '2026-11-26 16:09:41.367662', '2026-11-26 16:09:41.577085');
INSERT INTO public.trials VALUES (11, 10, 1, 'PRUNED', '2026-11-26 16:09:41.606985', '2026-11-26 16:09:41.748981');
INSERT INTO public.trials VALUES (12, 11, 1, 'COMPLETE', '2026-11-26 16:09:41.780681', '2026-11-26 16:09:41.910775');
INSERT INTO public.trials VALUES (13, 12, 1, 'COMPLETE', '2026-11-26 16:09:41.925133', '2026-11-26 16:09:42.06525');
INSERT INTO public.trials VALUES (14, 13, 1, 'COMPLETE', '2026-11-26 16:09:42.083538', '2026-11-26 16:09:42.223515');
INSERT INTO public.version_info VALUES (1, 12, '2.10.1');
SELECT pg_catalog.setval('public.studies_study_id_seq', 1, true);
SELECT pg_catalog.setval('public.study_directions_study_direction_id_seq', 1, true);
SELECT pg_catalog.setval('public.study_system_attributes_study_system_attribute_id_seq', 1, false);
SELECT pg_catalog.setval('public.study_user_attributes_study_user_attribute_id_seq', 1, false);
SELECT pg_catalog.setval('public.trial_heartbeats_trial_heartbeat_id_seq', 1, false);
SELECT pg_catalog.setval('public.trial_intermediate_values_trial_intermediate_value_id_seq', 59, true);
SELECT pg_catalog.setval('public.trial_params_param_id_seq', 45, true);
SELECT pg_catalog.setval('public.trial_system_attributes_trial_system_attribute_id_seq', 1, false);
SELECT pg_catalog.setval('public.trial_user_attributes_trial_user_attribute_id_seq', 14, true);
SELECT pg_catalog.setval('public.trial_values_trial_value_id_seq', 13, true);
SELECT pg_catalog.setval('public.trials_trial_id_seq', 14, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.studies
    ADD CONSTRAINT studies_pkey PRIMARY KEY (study_id);
ALTER TABLE ONLY public.study_directions
    ADD CONSTRAINT study_directions_pkey PRIMARY KEY (study_direction_id);
ALTER TABLE ONLY public.study_directions
    ADD CONSTRAINT study_directions_study_id_objective_key UNIQUE (study_id, objective);
ALTER TABLE ONLY public.study_system_attributes
    ADD CONSTRAINT study_system_attributes_pkey PRIMARY KEY (study_system_attribute_id);
ALTER TABLE ONLY public.study_system_attributes
    ADD CONSTRAINT study_system_attributes_study_id_key_key UNIQUE (study_id, key);
ALTER TABLE ONLY public.study_user_attributes
    ADD CONSTRAINT study_user_attributes_pkey PRIMARY KEY (study_user_attribute_id);
ALTER TABLE ONLY public.study_user_attributes
    ADD CONSTRAINT study_user_attributes_study_id_key_key UNIQUE (study_id, key);
ALTER TABLE ONLY public.trial_heartbeats
    ADD CONSTRAINT trial_heartbeats_pkey PRIMARY KEY (trial_heartbeat_id);
ALTER TABLE ONLY public.trial_heartbeats
    ADD CONSTRAINT trial_heartbeats_trial_id_key UNIQUE (trial_id);
ALTER TABLE ONLY public.trial_intermediate_values
    ADD CONSTRAINT trial_intermediate_values_pkey PRIMARY KEY (trial_intermediate_value_id);
ALTER TABLE ONLY public.trial_intermediate_values
    ADD CONSTRAINT trial_intermediate_values_trial_id_step_key UNIQUE (trial_id, step);
ALTER TABLE ONLY public.trial_params
    ADD CONSTRAINT trial_params_pkey PRIMARY KEY (param_id);
ALTER TABLE ONLY public.trial_params
    ADD CONSTRAINT trial_params_trial_id_param_name_key UNIQUE (trial_id, param_name);
ALTER TABLE ONLY public.trial_system_attributes
    ADD CONSTRAINT trial_system_attributes_pkey PRIMARY KEY (trial_system_attribute_id);
ALTER TABLE ONLY public.trial_system_attributes
    ADD CONSTRAINT trial_system_attributes_trial_id_key_key UNIQUE (trial_id, key);
ALTER TABLE ONLY public.trial_user_attributes
    ADD CONSTRAINT trial_user_attributes_pkey PRIMARY KEY (trial_user_attribute_id);
ALTER TABLE ONLY public.trial_user_attributes
    ADD CONSTRAINT trial_user_attributes_trial_id_key_key UNIQUE (trial_id, key);
ALTER TABLE ONLY public.trial_values
    ADD CONSTRAINT trial_values_pkey PRIMARY KEY (trial_value_id);
ALTER TABLE ONLY public.trial_values
    ADD CONSTRAINT trial_values_trial_id_objective_key UNIQUE (trial_id, objective);
ALTER TABLE ONLY public.trials
    ADD CONSTRAINT trials_pkey PRIMARY KEY (trial_id);
ALTER TABLE ONLY public.version_info
    ADD CONSTRAINT version_info_pkey PRIMARY KEY (version_info_id);
CREATE UNIQUE INDEX ix_studies_study_name ON public.studies USING btree (study_name);
ALTER TABLE ONLY public.study_directions
    ADD CONSTRAINT study_directions_study_id_fkey FOREIGN KEY (study_id) REFERENCES public.studies(study_id);
ALTER TABLE ONLY public.study_system_attributes
    ADD CONSTRAINT study_system_attributes_study_id_fkey FOREIGN KEY (study_id) REFERENCES public.studies(study_id);
ALTER TABLE ONLY public.study_user_attributes
    ADD CONSTRAINT study_user_attributes_study_id_fkey FOREIGN KEY (study_id) REFERENCES public.studies(study_id);
ALTER TABLE ONLY public.trial_heartbeats
    ADD CONSTRAINT trial_heartbeats_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(trial_id);
ALTER TABLE ONLY public.trial_intermediate_values
    ADD CONSTRAINT trial_intermediate_values_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(trial_id);
ALTER TABLE ONLY public.trial_params
    ADD CONSTRAINT trial_params_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(trial_id);
ALTER TABLE ONLY public.trial_system_attributes
    ADD CONSTRAINT trial_system_attributes_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(trial_id);
ALTER TABLE ONLY public.trial_user_attributes
    ADD CONSTRAINT trial_user_attributes_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(trial_id);
ALTER TABLE ONLY public.trial_values
    ADD CONSTRAINT trial_values_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(trial_id);
ALTER TABLE ONLY public.trials
    ADD CONSTRAINT trials_study_id_fkey FOREIGN KEY (study_id) REFERENCES public.studies(study_id);
