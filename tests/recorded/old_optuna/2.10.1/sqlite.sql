BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v2.6.0.a');
CREATE TABLE studies (
	study_id INTEGER NOT NULL, 
	study_name VARCHAR(512) NOT NULL, 
	PRIMARY KEY (study_id)
);
INSERT INTO "studies" VALUES(1,'old');
CREATE TABLE study_directions (
	study_direction_id INTEGER NOT NULL, 
	direction VARCHAR(8) NOT NULL, 
	study_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	PRIMARY KEY (study_direction_id), 
	UNIQUE (study_id, objective), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_directions" VALUES(1,'MAXIMIZE',1,0);
CREATE TABLE study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_system_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_user_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE trial_heartbeats (
	trial_heartbeat_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	PRIMARY KEY (trial_heartbeat_id), 
	UNIQUE (trial_id), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_intermediate_values (
	trial_intermediate_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	intermediate_value FLOAT NOT NULL, 
	PRIMARY KEY (trial_intermediate_value_id), 
	UNIQUE (trial_id, step), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_intermediate_values" VALUES(1,1,0,8.00007726319876510956e+00);
INSERT INTO "trial_intermediate_values" VALUES(2,1,1,4.00007726319876510956e+00);
INSERT INTO "trial_intermediate_values" VALUES(3,1,2,2.6667439298654316282e+00);
INSERT INTO "trial_intermediate_values" VALUES(4,1,3,2.00007726319876510956e+00);
INSERT INTO "trial_intermediate_values" VALUES(5,1,4,1.60007726319876519838e+00);
INSERT INTO "trial_intermediate_values" VALUES(6,2,0,1.0000563488315117322e+00);
INSERT INTO "trial_intermediate_values" VALUES(7,2,1,5.000563488315117322e-01);
INSERT INTO "trial_intermediate_values" VALUES(8,2,2,0.333389682164845);
INSERT INTO "trial_intermediate_values" VALUES(9,2,3,2.50056348831511676689e-01);
INSERT INTO "trial_intermediate_values" VALUES(10,2,4,2.00056348831511687791e-01);
INSERT INTO "trial_intermediate_values" VALUES(11,3,0,6.0001528691078185318e+00);
INSERT INTO "trial_intermediate_values" VALUES(12,3,1,3.00015286910781808771e+00);
INSERT INTO "trial_intermediate_values" VALUES(13,3,2,2.00015286910781808771e+00);
INSERT INTO "trial_intermediate_values" VALUES(14,3,3,1.50015286910781808771e+00);
INSERT INTO "trial_intermediate_values" VALUES(15,3,4,1.2001528691078180433e+00);
INSERT INTO "trial_intermediate_values" VALUES(16,4,0,9e999);
INSERT INTO "trial_intermediate_values" VALUES(17,4,1,4.50004596755927899209e+00);
INSERT INTO "trial_intermediate_values" VALUES(18,4,2,3.00004596755927899209e+00);
INSERT INTO "trial_intermediate_values" VALUES(19,4,3,2.25004596755927899209e+00);
INSERT INTO "trial_intermediate_values" VALUES(20,4,4,1.80004596755927925855e+00);
INSERT INTO "trial_intermediate_values" VALUES(21,5,0,6.00001235186026082857e+00);
INSERT INTO "trial_intermediate_values" VALUES(22,5,1,3.00001235186026082857e+00);
INSERT INTO "trial_intermediate_values" VALUES(23,5,2,2.00001235186026082857e+00);
INSERT INTO "trial_intermediate_values" VALUES(24,5,3,1.50001235186026082857e+00);
INSERT INTO "trial_intermediate_values" VALUES(25,5,4,1.20001235186026078416e+00);
INSERT INTO "trial_intermediate_values" VALUES(26,6,0,9.03033418618201544347e+00);
INSERT INTO "trial_intermediate_values" VALUES(27,6,1,4.53033418618201544347e+00);
INSERT INTO "trial_intermediate_values" VALUES(28,6,2,3.03033418618201588756e+00);
INSERT INTO "trial_intermediate_values" VALUES(29,6,3,2.28033418618201588756e+00);
INSERT INTO "trial_intermediate_values" VALUES(30,6,4,1.83033418618201570993e+00);
INSERT INTO "trial_intermediate_values" VALUES(31,7,0,5.01211759263821754473e+00);
INSERT INTO "trial_intermediate_values" VALUES(32,7,1,2.51211759263821710064e+00);
INSERT INTO "trial_intermediate_values" VALUES(33,7,2,1.67878425930488384132e+00);
INSERT INTO "trial_intermediate_values" VALUES(34,7,3,1.26211759263821710064e+00);
INSERT INTO "trial_intermediate_values" VALUES(35,7,4,1.01211759263821710064e+00);
INSERT INTO "trial_intermediate_values" VALUES(36,9,0,1.00027809531588141034e+00);
INSERT INTO "trial_intermediate_values" VALUES(37,9,1,5.00278095315881410343e-01);
INSERT INTO "trial_intermediate_values" VALUES(38,10,0,6.00025608240690466743e+00);
INSERT INTO "trial_intermediate_values" VALUES(39,10,1,3.00025608240690466743e+00);
INSERT INTO "trial_intermediate_values" VALUES(40,10,2,2.00025608240690466743e+00);
INSERT INTO "trial_intermediate_values" VALUES(41,10,3,1.50025608240690466743e+00);
INSERT INTO "trial_intermediate_values" VALUES(42,10,4,1.20025608240690462302e+00);
INSERT INTO "trial_intermediate_values" VALUES(43,11,0,1.00024216568701);
INSERT INTO "trial_intermediate_values" VALUES(44,11,1,5.00242165687010076347e-01);
INSERT INTO "trial_intermediate_values" VALUES(45,12,0,5.00002782550135815853e+00);
INSERT INTO "trial_intermediate_values" VALUES(46,12,1,2.50002782550135771444e+00);
INSERT INTO "trial_intermediate_values" VALUES(47,12,2,1.66669449216802445512e+00);
INSERT INTO "trial_intermediate_values" VALUES(48,12,3,1.25002782550135771444e+00);
INSERT INTO "trial_intermediate_values" VALUES(49,12,4,1.00002782550135771444e+00);
INSERT INTO "trial_intermediate_values" VALUES(50,13,0,9.00044211419913);
INSERT INTO "trial_intermediate_values" VALUES(51,13,1,4.5004421141991288735e+00);
INSERT INTO "trial_intermediate_values" VALUES(52,13,2,3.0004421141991288735e+00);
INSERT INTO "trial_intermediate_values" VALUES(53,13,3,2.2504421141991288735e+00);
INSERT INTO "trial_intermediate_values" VALUES(54,13,4,1.80044211419912913996e+00);
INSERT INTO "trial_intermediate_values" VALUES(55,14,0,9.00027538024418);
INSERT INTO "trial_intermediate_values" VALUES(56,14,1,4.5002753802441786135e+00);
INSERT INTO "trial_intermediate_values" VALUES(57,14,2,3.0002753802441786135e+00);
INSERT INTO "trial_intermediate_values" VALUES(58,14,3,2.2502753802441786135e+00);
INSERT INTO "trial_intermediate_values" VALUES(59,14,4,1.80027538024417887996e+00);
CREATE TABLE trial_params (
	param_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	param_name VARCHAR(512), 
	param_value FLOAT, 
	distribution_json TEXT, 
	PRIMARY KEY (param_id), 
	UNIQUE (trial_id, param_name), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_params" VALUES(1,1,'lr',7.72631987651710655604e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(2,1,'depth',8.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(3,1,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(4,1,'momentum',2.96800501576221953392e-01,'{"name": "UniformDistribution", "attributes": {"low": 0.0, "high": 1.0}}');
INSERT INTO "trial_params" VALUES(5,2,'lr',5.63488315116903094219e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(6,2,'depth',1.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(7,2,'optimizer',3.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(8,3,'lr',1.52869107818094814282e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(9,3,'depth',6.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(10,3,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(11,3,'momentum',1.44164300653420451858e-01,'{"name": "UniformDistribution", "attributes": {"low": 0.0, "high": 1.0}}');
INSERT INTO "trial_params" VALUES(12,4,'lr',4.59675592792072515175e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(13,4,'depth',9.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(14,4,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(15,5,'lr',1.23518602608550125327e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(16,5,'depth',6.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(17,5,'optimizer',3.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(18,6,'lr',3.03341861820157487894e-02,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(19,6,'depth',9.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(20,6,'optimizer',2.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(21,7,'lr',1.2117592638217152684e-02,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(22,7,'depth',5.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(23,7,'optimizer',4.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(24,8,'lr',1.84773978690333344487e-02,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(25,8,'depth',6.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(26,8,'optimizer',2.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(27,9,'lr',2.78095315881425955706e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(28,9,'depth',1.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(29,9,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(30,9,'momentum',0.795087472921032,'{"name": "UniformDistribution", "attributes": {"low": 0.0, "high": 1.0}}');
INSERT INTO "trial_params" VALUES(31,10,'lr',0.000256082406904615,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(32,10,'depth',6.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(33,10,'optimizer',3.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(34,11,'lr',2.42165687010028750532e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(35,11,'depth',1.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(36,11,'optimizer',2.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(37,12,'lr',2.78255013577206509415e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(38,12,'depth',5.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(39,12,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(40,13,'lr',4.42114199129036301427e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(41,13,'depth',9.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(42,13,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
INSERT INTO "trial_params" VALUES(43,14,'lr',2.75380244178754618033e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(44,14,'depth',9.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 9, "step": 1}}');
INSERT INTO "trial_params" VALUES(45,14,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd", null, 3, 2.5, true]}}');
CREATE TABLE trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_system_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_user_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_user_attributes" VALUES(1,1,'seconds','2.5754399588390355e-05');
INSERT INTO "trial_user_attributes" VALUES(2,2,'seconds','1.8782943837230103e-05');
INSERT INTO "trial_user_attributes" VALUES(3,3,'seconds','5.0956369272698274e-05');
INSERT INTO "trial_user_attributes" VALUES(4,4,'seconds','1.532251975973575e-05');
INSERT INTO "trial_user_attributes" VALUES(5,5,'seconds','4.1172867536183375e-06');
INSERT INTO "trial_user_attributes" VALUES(6,6,'seconds','0.010111395394005249');
INSERT INTO "trial_user_attributes" VALUES(7,7,'seconds','0.004039197546072384');
INSERT INTO "trial_user_attributes" VALUES(8,8,'seconds','0.006159132623011112');
INSERT INTO "trial_user_attributes" VALUES(9,9,'seconds','9.269843862714199e-05');
INSERT INTO "trial_user_attributes" VALUES(10,10,'seconds','8.536080230153834e-05');
INSERT INTO "trial_user_attributes" VALUES(11,11,'seconds','8.072189567000958e-05');
INSERT INTO "trial_user_attributes" VALUES(12,12,'seconds','9.275167119240216e-06');
INSERT INTO "trial_user_attributes" VALUES(13,13,'seconds','0.00014737139970967878');
INSERT INTO "trial_user_attributes" VALUES(14,14,'seconds','9.179341472625154e-05');
CREATE TABLE trial_values (
	trial_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	value FLOAT NOT NULL, 
	PRIMARY KEY (trial_value_id), 
	UNIQUE (trial_id, objective), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_values" VALUES(1,1,0,1.60007726319876519838e+00);
INSERT INTO "trial_values" VALUES(2,2,0,2.00056348831511687791e-01);
INSERT INTO "trial_values" VALUES(3,3,0,1.2001528691078180433e+00);
INSERT INTO "trial_values" VALUES(4,4,0,1.80004596755927925855e+00);
INSERT INTO "trial_values" VALUES(5,5,0,1.20001235186026078416e+00);
INSERT INTO "trial_values" VALUES(6,6,0,1.83033418618201570993e+00);
INSERT INTO "trial_values" VALUES(7,7,0,1.01211759263821710064e+00);
INSERT INTO "trial_values" VALUES(8,9,0,5.00278095315881410343e-01);
INSERT INTO "trial_values" VALUES(9,10,0,1.20025608240690462302e+00);
INSERT INTO "trial_values" VALUES(10,11,0,5.00242165687010076347e-01);
INSERT INTO "trial_values" VALUES(11,12,0,1.00002782550135771444e+00);
INSERT INTO "trial_values" VALUES(12,13,0,1.80044211419912913996e+00);
INSERT INTO "trial_values" VALUES(13,14,0,1.80027538024417887996e+00);
CREATE TABLE trials (
	trial_id INTEGER NOT NULL, 
	number INTEGER, 
	study_id INTEGER, 
	state VARCHAR(8) NOT NULL, 
	datetime_start DATETIME, 
	datetime_complete DATETIME, 
	PRIMARY KEY (trial_id), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "trials" VALUES(1,0,1,'COMPLETE','2026-11-26 16:09:29.662033','2026-11-26 16:09:30.299222');
INSERT INTO "trials" VALUES(2,1,1,'COMPLETE','2026-11-26 16:09:30.389585','2026-11-26 16:09:30.736271');
INSERT INTO "trials" VALUES(3,2,1,'COMPLETE','2026-11-26 16:09:30.762787','2026-11-26 16:09:31.085130');
INSERT INTO "trials" VALUES(4,3,1,'COMPLETE','2026-11-26 16:09:31.122003','2026-11-26 16:09:31.417138');
INSERT INTO "trials" VALUES(5,4,1,'COMPLETE','2026-11-26 16:09:31.457519','2026-11-26 16:09:31.718720');
INSERT INTO "trials" VALUES(6,5,1,'COMPLETE','2026-11-26 16:09:31.752171','2026-11-26 16:09:32.052050');
INSERT INTO "trials" VALUES(7,6,1,'COMPLETE','2026-11-26 16:09:32.092608','2026-11-26 16:09:32.402971');
INSERT INTO "trials" VALUES(8,7,1,'FAIL','2026-11-26 16:09:32.446611','2026-11-26 16:09:32.583518');
INSERT INTO "trials" VALUES(9,8,1,'PRUNED','2026-11-26 16:09:32.607822','2026-11-26 16:09:32.845186');
INSERT INTO "trials" VALUES(10,9,1,'COMPLETE','2026-11-26 16:09:32.883461','2026-11-26 16:09:33.243441');
INSERT INTO "trials" VALUES(11,10,1,'PRUNED','2026-11-26 16:09:33.300286','2026-11-26 16:09:33.532148');
INSERT INTO "trials" VALUES(12,11,1,'COMPLETE','2026-11-26 16:09:33.575784','2026-11-26 16:09:33.913031');
INSERT INTO "trials" VALUES(13,12,1,'COMPLETE','2026-11-26 16:09:33.946279','2026-11-26 16:09:34.290101');
INSERT INTO "trials" VALUES(14,13,1,'COMPLETE','2026-11-26 16:09:34.333042','2026-11-26 16:09:34.649745');
CREATE TABLE version_info (
	version_info_id INTEGER NOT NULL, 
	schema_version INTEGER, 
	library_version VARCHAR(256), 
	PRIMARY KEY (version_info_id), 
	CHECK (version_info_id=1)
);
INSERT INTO "version_info" VALUES(1,12,'2.10.1');
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
COMMIT;