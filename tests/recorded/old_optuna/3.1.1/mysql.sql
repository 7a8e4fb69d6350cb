DROP TABLE IF EXISTS `alembic_version`;
CREATE TABLE `alembic_version` (
  `version_num` varchar(32) NOT NULL,
  PRIMARY KEY (`version_num`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `alembic_version` WRITE;
INSERT INTO `alembic_version` VALUES
('v3.0.0.d');
UNLOCK TABLES;
DROP TABLE IF EXISTS `studies`;
CREATE TABLE `studies` (
  `study_id` int(11) NOT NULL AUTO_INCREMENT,
  `study_name` varchar(512) NOT NULL,
  PRIMARY KEY (`study_id`),
  UNIQUE KEY `ix_studies_study_name` (`study_name`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `studies` WRITE;
INSERT INTO `studies` VALUES
(1,'old');
UNLOCK TABLES;
DROP TABLE IF EXISTS `study_directions`;
CREATE TABLE `study_directions` (
  `study_direction_id` int(11) NOT NULL AUTO_INCREMENT,
  `direction` enum('NOT_SET','MINIMIZE','MAXIMIZE') NOT NULL,
  `study_id` int(11) NOT NULL,
  `objective` int(11) NOT NULL,
  PRIMARY KEY (`study_direction_id`),
  UNIQUE KEY `study_id` (`study_id`,`objective`),
  CONSTRAINT `study_directions_ibfk_1` FOREIGN KEY (`study_id`) REFERENCES `studies` (`study_id`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `study_directions` WRITE;
INSERT INTO `study_directions` VALUES
(1,'MAXIMIZE',1,0);
UNLOCK TABLES;
DROP TABLE IF EXISTS `study_system_attributes`;
CREATE TABLE `study_system_attributes` (
  `study_system_attribute_id` int(11) NOT NULL AUTO_INCREMENT,
  `study_id` int(11) DEFAULT NULL,
  `key` varchar(512) DEFAULT NULL,
  `value_json` text DEFAULT NULL,
  PRIMARY KEY (`study_system_attribute_id`),
  UNIQUE KEY `study_id` (`study_id`,`key`),
  CONSTRAINT `study_system_attributes_ibfk_1` FOREIGN KEY (`study_id`) REFERENCES `studies` (`study_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `study_system_attributes` WRITE;
UNLOCK TABLES;
DROP TABLE IF EXISTS `study_user_attributes`;
CREATE TABLE `study_user_attributes` (
  `study_user_attribute_id` int(11) NOT NULL AUTO_INCREMENT,
  `study_id` int(11) DEFAULT NULL,
  `key` varchar(512) DEFAULT NULL,
  `value_json` text DEFAULT NULL,
  PRIMARY KEY (`study_user_attribute_id`),
  UNIQUE KEY `study_id` (`study_id`,`key`),
  CONSTRAINT `study_user_attributes_ibfk_1` FOREIGN KEY (`study_id`) REFERENCES `studies` (`study_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `study_user_attributes` WRITE;
UNLOCK TABLES;
DROP TABLE IF EXISTS `trial_heartbeats`;
CREATE TABLE `trial_heartbeats` (
  `trial_heartbeat_id` int(11) NOT NULL AUTO_INCREMENT,
  `trial_id` int(11) NOT NULL,
  `heartbeat` datetime NOT NULL,
  PRIMARY KEY (`trial_heartbeat_id`),
  UNIQUE KEY `trial_id` (`trial_id`),
  CONSTRAINT `trial_heartbeats_ibfk_1` FOREIGN KEY (`trial_id`) REFERENCES `trials` (`trial_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `trial_heartbeats` WRITE;
UNLOCK TABLES;
DROP TABLE IF EXISTS `trial_intermediate_values`;
CREATE TABLE `trial_intermediate_values` (
  `trial_intermediate_value_id` int(11) NOT NULL AUTO_INCREMENT,
  `trial_id` int(11) NOT NULL,
  `step` int(11) NOT NULL,
  `intermediate_value` double DEFAULT NULL,
  `intermediate_value_type` enum('FINITE','INF_POS','INF_NEG','NAN') NOT NULL,
  PRIMARY KEY (`trial_intermediate_value_id`),
  UNIQUE KEY `trial_id` (`trial_id`,`step`),
  CONSTRAINT `trial_intermediate_values_ibfk_1` FOREIGN KEY (`trial_id`) REFERENCES `trials` (`trial_id`)
) ENGINE=InnoDB AUTO_INCREMENT=60 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `trial_intermediate_values` WRITE;
INSERT INTO `trial_intermediate_values` VALUES
(1,1,0,8.000077263198765,'FINITE'),
(2,1,1,4.000077263198765,'FINITE'),
(3,1,2,2.6667439298654316,'FINITE'),
(4,1,3,2.000077263198765,'FINITE'),
(5,1,4,1.6000772631987652,'FINITE'),
(6,2,0,1.0000563488315117,'FINITE'),
(7,2,1,0.5000563488315117,'FINITE'),
(8,2,2,0.333389682164845,'FINITE'),
(9,2,3,0.2500563488315117,'FINITE'),
(10,2,4,0.2000563488315117,'FINITE'),
(11,3,0,6.0001528691078185,'FINITE'),
(12,3,1,3.000152869107818,'FINITE'),
(13,3,2,2.000152869107818,'FINITE'),
(14,3,3,1.500152869107818,'FINITE'),
(15,3,4,1.200152869107818,'FINITE'),
(16,4,0,9.000045967559279,'FINITE'),
(17,4,1,4.500045967559279,'FINITE'),
(18,4,2,3.000045967559279,'FINITE'),
(19,4,3,2.250045967559279,'FINITE'),
(20,4,4,1.8000459675592793,'FINITE'),
(21,5,0,6.000012351860261,'FINITE'),
(22,5,1,3.000012351860261,'FINITE'),
(23,5,2,2.000012351860261,'FINITE'),
(24,5,3,1.5000123518602608,'FINITE'),
(25,5,4,1.2000123518602608,'FINITE'),
(26,6,0,9.030334186182015,'FINITE'),
(27,6,1,4.530334186182015,'FINITE'),
(28,6,2,3.030334186182016,'FINITE'),
(29,6,3,2.280334186182016,'FINITE'),
(30,6,4,1.8303341861820157,'FINITE'),
(31,7,0,5.0121175926382175,'FINITE'),
(32,7,1,2.512117592638217,'FINITE'),
(33,7,2,1.6787842593048838,'FINITE'),
(34,7,3,1.262117592638217,'FINITE'),
(35,7,4,1.012117592638217,'FINITE'),
(36,9,0,1.0002780953158814,'FINITE'),
(37,9,1,0.5002780953158814,'FINITE'),
(38,10,0,6.000256082406905,'FINITE'),
(39,10,1,3.0002560824069047,'FINITE'),
(40,10,2,2.0002560824069047,'FINITE'),
(41,10,3,1.5002560824069047,'FINITE'),
(42,10,4,1.2002560824069046,'FINITE'),
(43,11,0,1.00024216568701,'FINITE'),
(44,11,1,0.5002421656870101,'FINITE'),
(45,12,0,5.000027825501358,'FINITE'),
(46,12,1,2.5000278255013577,'FINITE'),
(47,12,2,1.6666944921680245,'FINITE'),
(48,12,3,1.2500278255013577,'FINITE'),
(49,12,4,1.0000278255013577,'FINITE'),
(50,13,0,9.00044211419913,'FINITE'),
(51,13,1,4.500442114199129,'FINITE'),
(52,13,2,3.000442114199129,'FINITE'),
(53,13,3,2.250442114199129,'FINITE'),
(54,13,4,1.8004421141991291,'FINITE'),
(55,14,0,9.00027538024418,'FINITE'),
(56,14,1,4.500275380244179,'FINITE'),
(57,14,2,3.0002753802441786,'FINITE'),
(58,14,3,2.2502753802441786,'FINITE'),
(59,14,4,1.8002753802441789,'FINITE');
UNLOCK TABLES;
DROP TABLE IF EXISTS `trial_params`;
CREATE TABLE `trial_params` (
  `param_id` int(11) NOT NULL AUTO_INCREMENT,
  `trial_id` int(11) DEFAULT NULL,
  `param_name` varchar(512) DEFAULT NULL,
  `param_value` double DEFAULT NULL,
  `distribution_json` text DEFAULT NULL,
  PRIMARY KEY (`param_id`),
  UNIQUE KEY `trial_id` (`trial_id`,`param_name`),
  CONSTRAINT `trial_params_ibfk_1` FOREIGN KEY (`trial_id`) REFERENCES `trials` (`trial_id`)
) ENGINE=InnoDB AUTO_INCREMENT=46 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `trial_params` WRITE;
INSERT INTO `trial_params` VALUES
(1,1,'lr',0.00007726319876517107,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(2,1,'depth',8,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(3,1,'optimizer',1,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(4,1,'momentum',0.29680050157622195,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.0, \"high\": 1.0, \"log\": false}}'),
(5,2,'lr',0.00005634883151169031,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(6,2,'depth',1,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(7,2,'optimizer',3,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(8,3,'lr',0.00015286910781809481,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(9,3,'depth',6,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(10,3,'optimizer',1,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(11,3,'momentum',0.14416430065342045,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.0, \"high\": 1.0, \"log\": false}}'),
(12,4,'lr',0.00004596755927920725,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(13,4,'depth',9,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(14,4,'optimizer',0,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(15,5,'lr',0.000012351860260855013,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(16,5,'depth',6,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(17,5,'optimizer',3,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(18,6,'lr',0.03033418618201575,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(19,6,'depth',9,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(20,6,'optimizer',2,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(21,7,'lr',0.012117592638217153,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(22,7,'depth',5,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(23,7,'optimizer',4,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(24,8,'lr',0.018477397869033334,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(25,8,'depth',6,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(26,8,'optimizer',2,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(27,9,'lr',0.00027809531588142596,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(28,9,'depth',1,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(29,9,'optimizer',1,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(30,9,'momentum',0.795087472921032,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.0, \"high\": 1.0, \"log\": false}}'),
(31,10,'lr',0.000256082406904615,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(32,10,'depth',6,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(33,10,'optimizer',3,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(34,11,'lr',0.00024216568701002875,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(35,11,'depth',1,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(36,11,'optimizer',2,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(37,12,'lr',0.00002782550135772065,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(38,12,'depth',5,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(39,12,'optimizer',0,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(40,13,'lr',0.0004421141991290363,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(41,13,'depth',9,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(42,13,'optimizer',0,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(43,14,'lr',0.0002753802441787546,'{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1e-05, \"high\": 0.1, \"log\": true}}'),
(44,14,'depth',9,'{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 9}}'),
(45,14,'optimizer',0,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}');
UNLOCK TABLES;
DROP TABLE IF EXISTS `trial_system_attributes`;
CREATE TABLE `trial_system_attributes` (
  `trial_system_attribute_id` int(11) NOT NULL AUTO_INCREMENT,
  `trial_id` int(11) DEFAULT NULL,
  `key` varchar(512) DEFAULT NULL,
  `value_json` text DEFAULT NULL,
  PRIMARY KEY (`trial_system_attribute_id`),
  UNIQUE KEY `trial_id` (`trial_id`,`key`),
  CONSTRAINT `trial_system_attributes_ibfk_1` FOREIGN KEY (`trial_id`) REFERENCES `trials` (`trial_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `trial_system_attributes` WRITE;
UNLOCK TABLES;
DROP TABLE IF EXISTS `trial_user_attributes`;
CREATE TABLE `trial_user_attributes` (
  `trial_user_attribute_id` int(11) NOT NULL AUTO_INCREMENT,
  `trial_id` int(11) DEFAULT NULL,
  `key` varchar(512) DEFAULT NULL,
  `value_json` text DEFAULT NULL,
  PRIMARY KEY (`trial_user_attribute_id`),
  UNIQUE KEY `trial_id` (`trial_id`,`key`),
  CONSTRAINT `trial_user_attributes_ibfk_1` FOREIGN KEY (`trial_id`) REFERENCES `trials` (`trial_id`)
) ENGINE=InnoDB AUTO_INCREMENT=15 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `trial_user_attributes` WRITE;
INSERT INTO `trial_user_attributes` VALUES
(1,1,'seconds','2.5754399588390355e-05'),
(2,2,'seconds','1.8782943837230103e-05'),
(3,3,'seconds','5.0956369272698274e-05'),
(4,4,'seconds','1.532251975973575e-05'),
(5,5,'seconds','4.1172867536183375e-06'),
(6,6,'seconds','0.010111395394005249'),
(7,7,'seconds','0.004039197546072384'),
(8,8,'seconds','0.006159132623011112'),
(9,9,'seconds','9.269843862714199e-05'),
(10,10,'seconds','8.536080230153834e-05'),
(11,11,'seconds','8.072189567000958e-05'),
(12,12,'seconds','9.275167119240216e-06'),
(13,13,'seconds','0.00014737139970967878'),
(14,14,'seconds','9.179341472625154e-05');
UNLOCK TABLES;
DROP TABLE IF EXISTS `trial_values`;
CREATE TABLE `trial_values` (
  `trial_value_id` int(11) NOT NULL AUTO_INCREMENT,
  `trial_id` int(11) NOT NULL,
  `objective` int(11) NOT NULL,
  `value` double DEFAULT NULL,
  `value_type` enum('FINITE','INF_POS','INF_NEG') NOT NULL,
  PRIMARY KEY (`trial_value_id`),
  UNIQUE KEY `trial_id` (`trial_id`,`objective`),
  CONSTRAINT `trial_values_ibfk_1` FOREIGN KEY (`trial_id`) REFERENCES `trials` (`trial_id`)
) ENGINE=InnoDB AUTO_INCREMENT=14 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `trial_values` WRITE;
INSERT INTO `trial_values` VALUES
(1,1,0,1.6000772631987652,'FINITE'),
(2,2,0,0.2000563488315117,'FINITE'),
(3,3,0,1.200152869107818,'FINITE'),
(4,4,0,1.8000459675592793,'FINITE'),
(5,5,0,1.2000123518602608,'FINITE'),
(6,6,0,1.8303341861820157,'FINITE'),
(7,7,0,1.012117592638217,'FINITE'),
(8,9,0,0.5002780953158814,'FINITE'),
(9,10,0,1.2002560824069046,'FINITE'),
(10,11,0,0.5002421656870101,'FINITE'),
(11,12,0,1.0000278255013577,'FINITE'),
(12,13,0,1.8004421141991291,'FINITE'),
(13,14,0,1.8002753802441789,'FINITE');
UNLOCK TABLES;
DROP TABLE IF EXISTS `trials`;
CREATE TABLE `trials` (
  `trial_id` int(11) NOT NULL AUTO_INCREMENT,
  `number` int(11) DEFAULT NULL,
  `study_id` int(11) DEFAULT NULL,
  `state` enum('RUNNING','COMPLETE','PRUNED','FAIL','WAITING') NOT NULL,
  `datetime_start` datetime DEFAULT NULL,
  `datetime_complete` datetime DEFAULT NULL,
  PRIMARY KEY (`trial_id`),
  KEY `study_id` (`study_id`),
  CONSTRAINT `trials_ibfk_1` FOREIGN KEY (`study_id`) REFERENCES `studies` (`study_id`)
) ENGINE=InnoDB AUTO_INCREMENT=15 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `trials` WRITE;
INSERT INTO `trials` VALUES
(1,0,1,'COMPLETE','2026-11-26 16:10:30','2026-11-26 16:10:31'),
(2,1,1,'COMPLETE','2026-11-26 16:10:31','2026-11-26 16:10:31'),
(3,2,1,'COMPLETE','2026-11-26 16:10:31','2026-11-26 16:10:31'),
(4,3,1,'COMPLETE','2026-11-26 16:10:31','2026-11-26 16:10:31'),
(5,4,1,'COMPLETE','2026-11-26 16:10:31','2026-11-26 16:10:32'),
(6,5,1,'COMPLETE','2026-11-26 16:10:32','2026-11-26 16:10:32'),
(7,6,1,'COMPLETE','2026-11-26 16:10:32','2026-11-26 16:10:32'),
(8,7,1,'FAIL','2026-11-26 16:10:32','2026-11-26 16:10:33'),
(9,8,1,'PRUNED','2026-11-26 16:10:33','2026-11-26 16:10:33'),
(10,9,1,'COMPLETE','2026-11-26 16:10:33','2026-11-26 16:10:33'),
(11,10,1,'PRUNED','2026-11-26 16:10:33','2026-11-26 16:10:33'),
(12,11,1,'COMPLETE','2026-11-26 16:10:33','2026-11-26 16:10:34'),
(13,12,1,'COMPLETE','2026-11-26 16:10:34','2026-11-26 16:10:34'),
(14,13,1,'COMPLETE','2026-11-26 16:10:34','2026-11-26 16:10:34');
UNLOCK TABLES;
DROP TABLE IF EXISTS `version_info`;
CREATE TABLE `version_info` (
  `version_info_id` int(11) NOT NULL,
  `schema_version` int(11) DEFAULT NULL,
  `library_version` varchar(256) DEFAULT NULL,
  PRIMARY KEY (`version_info_id`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`version_info_id` = 1)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `version_info` WRITE;
INSERT INTO `version_info` VALUES
(1,12,'3.1.1');
UNLOCK TABLES;
