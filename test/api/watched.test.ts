/** Runs several test files on one service without a flusher, so that the journal still contains every change. */
import './coalesced_edits.cases.js';
import './delete_many.cases.js';
import './forward.cases.js';
import './identity.cases.js';
import './identity_people.cases.js';
import './texts.cases.js';
import './update_texts.cases.js';
