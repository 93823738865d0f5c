import { z } from 'zod';
import { objectErrors, objectParams, sendObject } from '../../actions/send_object.js';
import { type Dice, type DiceEmoji, diceValues, rollDice } from '../../content/dice.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';
import { answer, optional, text } from '../../wire/schema.js';

const invalid = { error: answer('emoji_invalid') };

/** Parses a die's emoji. Ignores a variation selector (U+FE0F). */
const diceEmoji = text
  .transform((given) => given.replaceAll('\ufe0f', ''))
  .pipe(z.enum(Object.keys(diceValues) as DiceEmoji[], invalid));

/** Sends an emoji with a random value. An invalid emoji is refused before the value is chosen. */
export const sendDice = defineMethod({
  name: 'sendDice',
  effect: 'grow',
  summary: 'Sends an animated emoji with a random value, for instance a die.',
  params: z.object({
    ...objectParams,
    emoji: optional(diceEmoji).describe(`One of ${Object.keys(diceValues).join(', ')}; default 🎲`),
  }),
  errors: [...objectErrors, 'emoji_invalid'],
  result: message,
  handler: (context, p) =>
    sendObject<Dice>(context, () => rollDice(context.store.random, p.emoji ?? '🎲'), p),
});
