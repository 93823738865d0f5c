/**
 * Runs the role `dev`, which is `npm start`. Starts everything, prints the banner, and shuts down cleanly on a signal.
 */
import type { Config } from '../config/config.js';
import { banner } from './announce.js';
import { Installation } from './installation.js';
import { Refusal } from './refusal.js';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/**
 * A second signal within this time counts as part of the first signal. npm forwards a Ctrl-C that the terminal has
 * already sent to this process.
 */
const same_signal_ms_max = 1_000;

/**
 * Returns two abort signals. The first signal to the process requests a shutdown, and a later signal shortens the
 * shutdown.
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
 * Runs until SIGINT, SIGTERM or SIGHUP. Then stops all processes cleanly and resolves. After a Refusal, prints the
 * message to stderr, sets the exit code to 1 and resolves. Rethrows any other error after the clean-up. `main` is the
 * compiled `main.js` whose roles are started. The default is the `main.js` of this build.
 */
export async function runDev(config: Config, options: { readonly main?: string } = {}): Promise<void> {
  // Ignores the error. This process must still clean up after its output pipe closes (`npm start | head`).
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
      // Keeps the process alive, because signal handlers do not. With external servers, nothing else might keep it
      // alive.
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
