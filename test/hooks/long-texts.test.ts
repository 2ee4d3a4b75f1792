import { expect, test } from 'vitest'
import type { TextPart } from '../../src/endpoints/texts.ts'
import { Redactor } from '../../src/hooks/redact.ts'
import { pii } from '../../src/hooks/redaction-rules.ts'

const ADDRESS = 'ada@example.com'
/** More characters than one turn of the event loop searches. */
const LONG = 300_000

function part(text: string, kind: TextPart['kind'] = 'text'): Pick<TextPart, 'text' | 'kind'> {
  return { text, kind }
}

test('a long text is redacted in several turns as in one, whatever a window cuts', async () => {
  const redactor = new Redactor([pii.email, pii.card])
  const turn = 256 * 1024
  for (const at of [turn - ADDRESS.length, turn - 8, turn - 1, turn, turn + 1]) {
    const text = `${'b '.repeat(at / 2).slice(0, at)}${ADDRESS} and 4111 1111 1111 1111 ${'c '.repeat(LONG / 2)}${ADDRESS}`
    const parts = [part('x'), part(text), part(`{"to":"${ADDRESS}"}`, 'tool_arguments'), part(ADDRESS)]

    expect(await redactor.allInTurns(parts)).toEqual(redactor.all(parts))
  }
})

test('other work gets a turn while long texts are redacted', async () => {
  const redactor = new Redactor([pii.email])
  let turns = 0
  const counting = setInterval(() => {
    turns += 1
  }, 0)
  await redactor.allInTurns([
    part('a '.repeat(1_000_000)),
    ...Array.from({ length: 50_000 }, () => part('a few words')),
  ])
  clearInterval(counting)

  expect(turns).toBeGreaterThanOrEqual(3)
})
