/**
 * Sets the colour scheme of the documentation. Uses the same storage key and the same classes as the API reference, so
 * that both have the same scheme.
 */
const key = 'redoc.colorMode';

type Mode = 'light' | 'dark';

function chosen(): Mode {
  const kept = localStorage.getItem(key);
  if (kept === 'light' || kept === 'dark') return kept;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

function apply(mode: Mode): void {
  document.documentElement.classList.remove('light', 'dark');
  document.documentElement.classList.add(mode);
}

/** Applies the colour scheme, and lets `button` switch between light and dark. */
export function startTheme(button: HTMLElement | null): void {
  apply(chosen());
  button?.addEventListener('click', () => {
    const mode = chosen() === 'dark' ? 'light' : 'dark';
    localStorage.setItem(key, mode);
    apply(mode);
  });
}
