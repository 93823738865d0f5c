/** Each library serves a webhook whose certificate it uploads itself. */
import { libraryBots, testFeatures } from './features.js';

testFeatures('a webhook', libraryBots);
