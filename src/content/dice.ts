/** Defines an emoji, for instance a die, that is animated and shows a random value. The server chooses the value. */
import { z } from 'zod';
import type { Random } from '../random.js';
import type { ContentObject } from '../store/core/codec.js';
import type { ObjectKind } from './kind.js';

/** Maps each emoji to its largest value. The smallest value is always 1. */
export const diceValues = { '🎲': 6, '🎯': 6, '🎳': 6, '🏀': 5, '⚽': 5, '🎰': 64 } as const;
export type DiceEmoji = keyof typeof diceValues;

export interface Dice extends ContentObject {
  readonly type: 'dice';
  readonly emoji: DiceEmoji;
  readonly value: number;
}

const diceFields = z
  .strictObject({
    emoji: z.string().describe(Object.keys(diceValues).join(', ')),
    value: z
      .int()
      .min(1)
      .max(64)
      .describe('1 to 6 for 🎲, 🎯 and 🎳, 1 to 5 for 🏀 and ⚽, 1 to 64 for 🎰. Drawn by the server'),
  })
  .meta({ id: 'Dice', description: 'An animated emoji with a random value.' });

export const rollDice = (random: Random, emoji: DiceEmoji): Dice => ({
  type: 'dice',
  emoji,
  value: random.int(1, diceValues[emoji] + 1),
});

export const dice: ObjectKind<Dice> = {
  sign: '',
  fields: { dice: diceFields.optional() },
  view: ({ emoji, value }) => ({ dice: { emoji, value } }),
  title: ({ emoji, value }) => `${emoji} ${value}`,
  copied: ({ emoji }, random) => rollDice(random, emoji),
};
