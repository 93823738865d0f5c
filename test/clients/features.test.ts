import { quick } from '../support/tiers.js';
import { libraryBots, testFeatures } from './features.js';

testFeatures('polling', libraryBots, quick);
