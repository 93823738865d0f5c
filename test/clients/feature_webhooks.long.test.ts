/** Tests libraries that serve a webhook. They upload the certificate of the webhook themselves. */
import { libraryBots, testFeatures } from './features.js';

testFeatures('a webhook', libraryBots);
