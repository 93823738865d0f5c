/**
 * The role `dev`, which `npm start` runs: starts everything, prints the banner, and shuts down in order on a signal.
 */
import type { Config } from '../config/config.js';
import { banner } from './announce.js';
import { Installation } from './installation.js';
import { Refusal } from './refusal.js';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** npm forwards a Ctrl-C that the terminal already sent us. A second signal this soon is the same one. */
const same_signal_ms_max = 1_000;

/** The first signal asks to stop, a later one to stop quickly. */
function listenForSignals(): { stop: AbortSignal; hurry: AbortSignal; end: () => void } {
  const stop = new AbortController();
  const hurry = new AbortController();
  let first = 0;
  const heard = () => {
    if (!stop.signal.aborted) {
      first = performance.now();
      stop.abort();
      process.stdout.write('\nStopping; press again to stop quickly\n');
    } else if (performance.now() - first > same_signal_ms_max) {
      hurry.abort();
    }
  };
  for (const signal of signals) process.on(signal, heard);
  const end = () => {
    for (const signal of signals) process.off(signal, heard);
  };
  return { stop: stop.signal, hurry: hurry.signal, end };
}

/**
 * Runs until SIGINT, SIGTERM or SIGHUP, then stops everything in order and resolves. A Refusal is printed to stderr as
 * one sentence, sets the exit code to 1 and also resolves. Any other error is thrown after the clean-up. `main` is the
 * compiled `main.js` whose roles are started; this build's by default.
 */
export async function runDev(config: Config, options: { readonly main?: string } = {}): Promise<void> {
  // A closed output pipe (`npm start | head`) must not end us without the clean-up.
  process.stdout.on('error', () => {});
  process.stderr.on('error', () => {});
  const { stop, hurry, end } = listenForSignals();
  const installation = new Installation(config, {
    ...options,
    say: (line) => process.stdout.write(`${line}\n`),
    signal: stop,
  });
  try {
    await installation.start();
    process.stdout.write(banner(installation.info, config.PETREL_HOME, installation.rates));
    if (!stop.aborted) {
      // Signal handlers do not keep a process alive. With external servers, nothing else may keep it alive.
      const alive = setInterval(() => {}, 2 ** 30);
      await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }));
      clearInterval(alive);
    }
    await installation.stop(hurry);
    process.stdout.write('Stopped\n');
  } catch (error) {
    if (stop.aborted) {
      process.stdout.write('Stopped before everything was ready\n');
    } else if (error instanceof Refusal) {
      process.stderr.write(`petrel: ${error.message}\n`);
      process.exitCode = 1;
    } else {
      throw error;
    }
  } finally {
    end();
  }
}
