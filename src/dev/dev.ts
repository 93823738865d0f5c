/**
 * Runs the role `dev`, as `npm start` does. Starts everything, prints the banner, and shuts down cleanly on a signal.
 */
import type { Config } from '../config/config.js';
import { banner } from './announce.js';
import { Installation } from './installation.js';
import { Refusal } from './refusal.js';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/**
 * A second signal within this time (in ms) counts as the same signal. After a Ctrl-C, this process gets a signal from
 * the terminal and another from npm.
 */
const same_signal_ms_max = 1_000;

/**
 * Returns two abort signals. The first process signal requests a shutdown (`stop`), and a later one shortens it
 * (`hurry`).
 */
function listenForSignals(): { stop: AbortSignal; hurry: AbortSignal; end: () => void } {
  const stop = new AbortController();
  const hurry = new AbortController();
  let first = 0;
  const onSignal = () => {
    if (!stop.signal.aborted) {
      first = performance.now();
      stop.abort();
      process.stdout.write('\nStopping; press again to stop quickly\n');
    } else if (performance.now() - first > same_signal_ms_max) {
      hurry.abort();
    }
  };
  for (const signal of signals) process.on(signal, onSignal);
  const end = () => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  return { stop: stop.signal, hurry: hurry.signal, end };
}

/**
 * Runs until SIGINT, SIGTERM or SIGHUP. Then stops all processes cleanly and resolves. After a Refusal, prints its
 * message to stderr, sets the exit code to 1 and resolves. Rethrows any other error after the clean-up. `main` is the
 * path of the `main.js` that runs the roles, by default the one of this build.
 */
export async function runDev(config: Config, options: { readonly main?: string } = {}): Promise<void> {
  // Ignores errors of a closed output pipe (`npm start | head`), because the process must still clean up.
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
      // Keeps the process alive until a signal arrives. A signal handler alone does not keep a process alive.
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
