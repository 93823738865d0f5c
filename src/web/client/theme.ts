/** Sets the colour scheme: light, dark, or that of the system. */
import { Cell } from './signal.js';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const key = 'petrel.theme';

function kept(): Theme {
  try {
    const found = localStorage.getItem(key);
    return themes.find((theme) => theme === found) ?? 'system';
  } catch {
    return 'system';
  }
}

export const theme = new Cell<Theme>(kept());

function apply(): void {
  if (theme.value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

apply();

export function setTheme(chosen: Theme): void {
  theme.set(chosen);
  apply();
  try {
    localStorage.setItem(key, chosen);
  } catch {
    // If the browser does not allow storage, the choice is lost when the page is closed.
  }
}
