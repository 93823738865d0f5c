/** Bots as their owners see them. */
import type { Bot } from '../store/control.js';

export const viewBot = (bot: Bot) => ({ id: bot.id, is_bot: true, username: bot.username, name: bot.name });
