/**
 * The role `dev`, which `npm start` runs. It starts everything, prints the banner, and shuts down cleanly on a signal.
 */
import type { Config } from '../config/config.js';
import { banner } from './announce.js';
import { Installation } from './installation.js';
import { Refusal } from './refusal.js';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/**
 * npm forwards a Ctrl-C that the terminal has already sent to us. A repeated signal within this time counts as the same
 * signal.
 */
const same_signal_ms_max = 1_000;

/** Listens for signals. The first signal requests a shutdown, and a later one shortens the shutdown. */
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
 * Runs until SIGINT, SIGTERM or SIGHUP. Then stops all processes cleanly and resolves. A Refusal also resolves: its
 * message is printed to stderr, and the exit code becomes 1. Any other error is thrown after the clean-up. `main` is
 * the compiled `main.js` whose roles are started. The default is the one in this build.
 */
export async function runDev(config: Config, options: { readonly main?: string } = {}): Promise<void> {
  // When the output pipe closes (`npm start | head`), this process must still clean up before it ends.
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
      // Signal handlers do not keep a process alive. With external servers, nothing else might keep it alive.
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
