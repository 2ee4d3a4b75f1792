import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Redactor } from '../../src/hooks/redact.ts'
import { pii, type RedactionRule } from '../../src/hooks/redaction-rules.ts'
import { slowness } from '../machine-slowness.mjs'
import { processorMs } from './processor-ms.ts'

const CHARACTERS = 1_000_000
const ROUNDS = 4
/** The slowest texts have a match in every four characters and take 60 ms; others take at most 45 ms. */
const BOUND_MS = 100 * slowness()

/** Texts that an expression for the rule would read many times; each is repeated. */
const HOSTILE: Readonly<Record<string, readonly string[]>> = {
  email: ['a', '@', 'a@', 'a@b.', 'a@b.c ', `${'a'.repeat(64)}@`, `a@${'b'.repeat(63)}.`, 'ä@ä.', '😀@', '𝒜@𝒜.𝒜 '],
  card: ['1', '1234 ', '1234-123456-', '4111 1111 1111 1111 ', '4111111111111111 ', '0000 '],
  iban: ['A', 'AA00', 'AB12 ', 'DE89370400440532013000 ', 'DE8937040044053201300'],
  ssn: ['123-', '123-45-', '078-05-1120 '],
  phone: [
    '+1',
    `+${'1'.repeat(34)}`,
    '+1 ',
    '+(',
    '+1)(',
    '123-',
    '(415) 555-',
    '+1-1-1-1-1-1-1-1 ',
    '(415) 555-2671 ',
  ],
  ip: ['1.1.1.1-', '::1-', '::', '1:1:', `${'f:'.repeat(23)}-`, '1.1.1.1.-'],
  keys: [
    'sk-',
    '-sk-',
    '-eyJ',
    '-eyJaaaaaaaa.',
    `_eyJ${'a'.repeat(676)}.`,
    '-AIza',
    `-ghp_${'a'.repeat(35)}`,
    'eyJaaaaaaaa.aaaaaaaa.aaaaaaaa ',
  ],
}

/** Repeats a text to the length of the check, as one flat string. */
function repeated(text: string): string {
  return Buffer.from(text.repeat(Math.ceil(CHARACTERS / text.length)).slice(0, CHARACTERS)).toString()
}

function bestMs(rule: RedactionRule, text: string): number {
  const redactor = new Redactor([rule])
  const rounds = Array.from({ length: ROUNDS }, () => processorMs(() => void redactor.all([{ kind: 'text', text }])))
  return Math.min(...rounds)
}

describe.each(Object.entries(pii))('the rule %s', (name, rule: RedactionRule) => {
  test.each(HOSTILE[name]!)('takes at most 100 ms for a million characters of %j', (text) => {
    expect(bestMs(rule, repeated(text))).toBeLessThanOrEqual(BOUND_MS)
  })

  test('takes at most 100 ms for a million characters of generated texts', () => {
    const pieces = fc.constantFrom(...HOSTILE[name]!, ...'aA1@.:+-_ ()/eyJ', '+49 ', '-sk-', 'DE12')
    const texts = fc.array(pieces, { minLength: 1, maxLength: 12 }).map((list) => list.join(''))
    fc.assert(
      fc.property(texts, (text) => bestMs(rule, repeated(text)) <= BOUND_MS),
      { numRuns: 12, endOnFailure: true },
    )
  })
})
