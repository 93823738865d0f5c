/** Bots on client libraries for Python and Go. */
import { programBots } from './feature_programs.js';
import { testFeatures } from './features.js';

testFeatures('polling', programBots);
testFeatures('a webhook', programBots);
testFeatures('a webhook route', programBots);
