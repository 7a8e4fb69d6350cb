DROP TABLE IF EXISTS `alembic_version`;
CREATE TABLE `alembic_version` (
  `version_num` varchar(32) NOT NULL,
  PRIMARY KEY (`version_num`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `alembic_version` WRITE;
INSERT INTO `alembic_version` VALUES
('v2.6.0.a');
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
  `intermediate_value` float NOT NULL,
  PRIMARY KEY (`trial_intermediate_value_id`),
  UNIQUE KEY `trial_id` (`trial_id`,`step`),
  CONSTRAINT `trial_intermediate_values_ibfk_1` FOREIGN KEY (`trial_id`) REFERENCES `trials` (`trial_id`)
) ENGINE=InnoDB AUTO_INCREMENT=60 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `trial_intermediate_values` WRITE;
INSERT INTO `trial_intermediate_values` VALUES
(1,1,0,8.00008),
(2,1,1,4.00008),
(3,1,2,2.66674),
(4,1,3,2.00008),
(5,1,4,1.60008),
(6,2,0,1.00006),
(7,2,1,0.500056),
(8,2,2,0.33339),
(9,2,3,0.250056),
(10,2,4,0.200056),
(11,3,0,6.00015),
(12,3,1,3.00015),
(13,3,2,2.00015),
(14,3,3,1.50015),
(15,3,4,1.20015),
(16,4,0,9.00005),
(17,4,1,4.50005),
(18,4,2,3.00005),
(19,4,3,2.25005),
(20,4,4,1.80005),
(21,5,0,6.00001),
(22,5,1,3.00001),
(23,5,2,2.00001),
(24,5,3,1.50001),
(25,5,4,1.20001),
(26,6,0,9.03033),
(27,6,1,4.53033),
(28,6,2,3.03033),
(29,6,3,2.28033),
(30,6,4,1.83033),
(31,7,0,5.01212),
(32,7,1,2.51212),
(33,7,2,1.67878),
(34,7,3,1.26212),
(35,7,4,1.01212),
(36,9,0,1.00028),
(37,9,1,0.500278),
(38,10,0,6.00026),
(39,10,1,3.00026),
(40,10,2,2.00026),
(41,10,3,1.50026),
(42,10,4,1.20026),
(43,11,0,1.00024),
(44,11,1,0.500242),
(45,12,0,5.00003),
(46,12,1,2.50003),
(47,12,2,1.66669),
(48,12,3,1.25003),
(49,12,4,1.00003),
(50,13,0,9.00044),
(51,13,1,4.50044),
(52,13,2,3.00044),
(53,13,3,2.25044),
(54,13,4,1.80044),
(55,14,0,9.00028),
(56,14,1,4.50028),
(57,14,2,3.00028),
(58,14,3,2.25028),
(59,14,4,1.80028);
UNLOCK TABLES;
DROP TABLE IF EXISTS `trial_params`;
CREATE TABLE `trial_params` (
  `param_id` int(11) NOT NULL AUTO_INCREMENT,
  `trial_id` int(11) DEFAULT NULL,
  `param_name` varchar(512) DEFAULT NULL,
  `param_value` float DEFAULT NULL,
  `distribution_json` text DEFAULT NULL,
  PRIMARY KEY (`param_id`),
  UNIQUE KEY `trial_id` (`trial_id`,`param_name`),
  CONSTRAINT `trial_params_ibfk_1` FOREIGN KEY (`trial_id`) REFERENCES `trials` (`trial_id`)
) ENGINE=InnoDB AUTO_INCREMENT=46 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `trial_params` WRITE;
INSERT INTO `trial_params` VALUES
(1,1,'lr',0.0000772632,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(2,1,'depth',8,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(3,1,'optimizer',1,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(4,1,'momentum',0.2968,'{\"name\": \"UniformDistribution\", \"attributes\": {\"low\": 0.0, \"high\": 1.0}}'),
(5,2,'lr',0.0000563488,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(6,2,'depth',1,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(7,2,'optimizer',3,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(8,3,'lr',0.000152869,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(9,3,'depth',6,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(10,3,'optimizer',1,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(11,3,'momentum',0.144164,'{\"name\": \"UniformDistribution\", \"attributes\": {\"low\": 0.0, \"high\": 1.0}}'),
(12,4,'lr',0.0000459676,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(13,4,'depth',9,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(14,4,'optimizer',0,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(15,5,'lr',0.0000123519,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(16,5,'depth',6,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(17,5,'optimizer',3,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(18,6,'lr',0.0303342,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(19,6,'depth',9,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(20,6,'optimizer',2,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(21,7,'lr',0.0121176,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(22,7,'depth',5,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(23,7,'optimizer',4,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(24,8,'lr',0.0184774,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(25,8,'depth',6,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(26,8,'optimizer',2,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(27,9,'lr',0.000278095,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(28,9,'depth',1,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(29,9,'optimizer',1,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(30,9,'momentum',0.795087,'{\"name\": \"UniformDistribution\", \"attributes\": {\"low\": 0.0, \"high\": 1.0}}'),
(31,10,'lr',0.000256082,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(32,10,'depth',6,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(33,10,'optimizer',3,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(34,11,'lr',0.000242166,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(35,11,'depth',1,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(36,11,'optimizer',2,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(37,12,'lr',0.0000278255,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(38,12,'depth',5,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(39,12,'optimizer',0,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(40,13,'lr',0.000442114,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(41,13,'depth',9,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
(42,13,'optimizer',0,'{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"adam\", \"sgd\", null, 3, 2.5, true]}}'),
(43,14,'lr',0.00027538,'{\"name\": \"LogUniformDistribution\", \"attributes\": {\"low\": 1e-05, \"high\": 0.1}}'),
(44,14,'depth',9,'{\"name\": \"IntUniformDistribution\", \"attributes\": {\"low\": 1, \"high\": 9, \"step\": 1}}'),
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
  `value` float NOT NULL,
  PRIMARY KEY (`trial_value_id`),
  UNIQUE KEY `trial_id` (`trial_id`,`objective`),
  CONSTRAINT `trial_values_ibfk_1` FOREIGN KEY (`trial_id`) REFERENCES `trials` (`trial_id`)
) ENGINE=InnoDB AUTO_INCREMENT=14 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `trial_values` WRITE;
INSERT INTO `trial_values` VALUES
(1,1,0,1.60008),
(2,2,0,0.200056),
(3,3,0,1.20015),
(4,4,0,1.80005),
(5,5,0,1.20001),
(6,6,0,1.83033),
(7,7,0,1.01212),
(8,9,0,0.500278),
(9,10,0,1.20026),
(10,11,0,0.500242),
(11,12,0,1.00003),
(12,13,0,1.80044),
(13,14,0,1.80028);
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
(1,0,1,'COMPLETE','2026-11-26 16:09:47','2026-11-26 16:09:48'),
(2,1,1,'COMPLETE','2026-11-26 16:09:48','2026-11-26 16:09:48'),
(3,2,1,'COMPLETE','2026-11-26 16:09:48','2026-11-26 16:09:48'),
(4,3,1,'COMPLETE','2026-11-26 16:09:48','2026-11-26 16:09:49'),
(5,4,1,'COMPLETE','2026-11-26 16:09:49','2026-11-26 16:09:49'),
(6,5,1,'COMPLETE','2026-11-26 16:09:49','2026-11-26 16:09:49'),
(7,6,1,'COMPLETE','2026-11-26 16:09:49','2026-11-26 16:09:50'),
(8,7,1,'FAIL','2026-11-26 16:09:50','2026-11-26 16:09:50'),
(9,8,1,'PRUNED','2026-11-26 16:09:50','2026-11-26 16:09:50'),
(10,9,1,'COMPLETE','2026-11-26 16:09:50','2026-11-26 16:09:50'),
(11,10,1,'PRUNED','2026-11-26 16:09:50','2026-11-26 16:09:50'),
(12,11,1,'COMPLETE','2026-11-26 16:09:50','2026-11-26 16:09:51'),
(13,12,1,'COMPLETE','2026-11-26 16:09:51','2026-11-26 16:09:51'),
(14,13,1,'COMPLETE','2026-11-26 16:09:51','2026-11-26 16:09:51');
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
(1,12,'2.10.1');
UNLOCK TABLES;
