#!/usr/bin/env node
/** Runs the command line. The files in `commands/` define the commands. */
import './tls_identity.js';
import { Command } from 'commander';
import { addAdministrators } from './commands/admin.js';
import { addBackups, addKeys } from './commands/backups.js';
import { addBench } from './commands/bench.js';
import { addCapacity } from './commands/capacity.js';
import { addConformance } from './commands/conformance.js';
import { addSuspensions, addWebhooks } from './commands/oversight.js';
import { addRoles } from './commands/roles.js';
import { addShards } from './commands/shards.js';
import { addTokens } from './commands/tokens.js';
import { version } from './config/version.js';

const program = new Command('petrel').description('A self-hosted bot messaging service.').version(version);
addRoles(program);
addWebhooks(program);
addSuspensions(program);
addAdministrators(program);
addBackups(program);
addKeys(program);
addShards(program);
addTokens(program);
addBench(program);
addCapacity(program);
addConformance(program);
await program.parseAsync();
