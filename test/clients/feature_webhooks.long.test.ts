/** Tests client libraries that run their own webhook server and upload its certificate. */
import { libraryBots, testFeatures } from './features.js';

testFeatures('a webhook', libraryBots);
