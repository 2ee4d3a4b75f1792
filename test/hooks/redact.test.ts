import { describe, expect, test } from 'vitest'
import type { TextKind } from '../../src/endpoints/texts.ts'
import type { TextVerdict, TextWindow } from '../../src/hooks/hook.ts'
import { redact } from '../../src/hooks/redact.ts'
import { pii, type RedactionRule } from '../../src/hooks/redaction-rules.ts'

const ALL = Object.values(pii)

/** Returns the caller's text for a text that arrives in these chunks. */
function streamed(pieces: readonly string[], rules: readonly RedactionRule[] = ALL, kind: TextKind = 'text'): string {
  const { text } = redact(rules)
  let sent = ''
  let held = ''
  let before = ''
  for (const [index, fresh] of pieces.entries()) {
    const isLast = index === pieces.length - 1
    const window = { kind, before, held, fresh, isLast } as TextWindow
    const verdict = text?.check(window) as Exclude<TextVerdict, { deny: object } | undefined>
    const { replace, hold = '' } = verdict
    const all = held + fresh
    expect(all.endsWith(hold)).toBe(true)
    sent += replace
    before = (before + all.slice(0, all.length - hold.length)).slice(-64)
    held = hold
  }
  return sent
}

const FOUND: Record<string, readonly string[]> = {
  EMAIL: ['jane.doe+news@mail.example.com', 'jörg@müller.example', "o'neil@example.org"],
  CARD: ['4111111111111111', '4111 1111 1111 1111', '4111-1111-1111-1111', '378282246310005', '3782 822463 10005'],
  IBAN: ['DE89370400440532013000', 'DE89 3704 0044 0532 0130 00', 'NO93 8601 1117 947', 'GB29NWBK60161331926819'],
  SSN: ['078-05-1120', '219 09 9999'],
  PHONE: ['+49 30 901820', '+1 (415) 555-2671', '(415) 555-2671', '415-555-2671', '+442083661177'],
  IP: ['192.168.12.255', '2001:db8:85a3::8a2e:370:7334', '::1'],
  KEY: [
    'sk-proj-abcdefghijklmnop1234',
    'AKIAIOSFODNN7EXAMPLE',
    'ghp_0123456789abcdefghijklmnopqrstuvwxyz',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U',
  ],
}

const SECRETS = Object.entries(FOUND).flatMap(([name, texts]) => texts.map((text) => [name, text] as const))

describe.each(SECRETS)('%s, %s', (name, secret) => {
  const text = `Before it, ${secret} and then more.`
  const expected = `Before it, [${name}] and then more.`

  test('is taken out of a whole text', () => {
    expect(streamed([text])).toBe(expected)
  })

  test('is taken out of a stream that cuts it at any place, or everywhere', () => {
    for (let cut = 0; cut <= text.length; cut++) expect(streamed([text.slice(0, cut), text.slice(cut)])).toBe(expected)
    expect(streamed([...text])).toBe(expected)
  })

  test('is taken out at the very beginning and end', () => {
    expect(streamed([...secret])).toBe(`[${name}]`)
  })
})

test.each([
  ['a number that fails the check of cards', '4111111111111112'],
  ['a long number', '123456789012345678901234567890'],
  ['an account with wrong check digits', 'DE88370400440532013000'],
  ['a number of no area', '000-12-3456'],
  ['a time', '12:30:45'],
  ['a version', 'v1.2.3'],
  ['a year and a day', 'on 2026-11-23 at noon'],
  ['an at sign alone', 'meet @ noon'],
  ['prices', 'from 1,000 to 2,000 for 3 items'],
])('%s stays', (_name, text) => {
  expect(streamed([text])).toBe(text)
  expect(streamed([...text])).toBe(text)
})

test('several in one text are all taken out, each by its own rule', () => {
  const text = 'a@b.example, 4111 1111 1111 1111 12/27; 10.0.0.1! DE89 3704 0044 0532 0130 00 EUR'
  const expected = '[EMAIL], [CARD] 12/27; [IP]! [IBAN] EUR'
  expect(streamed([text])).toBe(expected)
  expect(streamed([...text])).toBe(expected)
})

test('prose is not held back longer than a word', () => {
  const { text } = redact([pii.email, pii.card])
  const window = { kind: 'text', before: '', held: '', fresh: 'A few words and then som', isLast: false } as TextWindow
  expect(text?.check(window)).toEqual({ replace: 'A few words and then ', hold: 'som' })
})

test('a rule without `within` holds back what it may need', () => {
  const rule: RedactionRule = { name: 'word', pattern: /blue moon/i, maxLength: 9 }
  expect(streamed([...'a Blue Moon and a blue sky'], [rule])).toBe('a [WORD] and a blue sky')
})

test('what else is in the arguments of a tool stays as it was written', () => {
  const args =
    '{ "order": 9007199254740993, "to": "a@b.example", "price": 1.50, "note": "\\u00e9\\/", "same": 1, "same": 2 }'

  expect(streamed([args], ALL, 'tool_arguments')).toBe(args.replace('a@b.example', '[EMAIL]'))
  // More digits than a number of JavaScript has.
  expect(streamed(['{"card":6212345678901234577}'], ALL, 'tool_arguments')).toBe('{"card":"[CARD]"}')
})

test('arguments of tools stay JSON, with escapes and numbers read', () => {
  const json = JSON.stringify({ to: ['a@b.example'], card: 4111111111111111, n: 5, 'c@d.example': true })
  const escaped = json.replace('a@b', 'a\\u0040b')
  for (const text of [json, escaped])
    expect(JSON.parse(streamed([text], ALL, 'tool_arguments'))).toEqual({
      to: ['[EMAIL]'],
      card: '[CARD]',
      n: 5,
      '[EMAIL]': true,
    })
  expect(streamed(['{"broken": "a@b.example'], ALL, 'tool_arguments')).toBe('{"broken": "[EMAIL]')
})

test('a rule that cannot be used is an error that names it', () => {
  expect(() => redact([])).toThrow('at least one rule')
  expect(() => redact([undefined as never])).toThrow('must be an object, such as pii.email')
  expect(() => redact([{ name: 'x', pattern: 'x' as never, maxLength: 1 }])).toThrow('rule x needs a pattern')
  expect(() => redact([{ name: 'x', pattern: /x/, find: () => [], maxLength: 1 }])).toThrow('and not both')
  expect(() => redact([{ name: 'x', pattern: /x/, maxLength: 0 }])).toThrow('rule x needs maxLength')
  expect(() => redact([{ name: 'x', pattern: /x/, maxLength: 1, within: /x/g }])).toThrow('flags g and y')
})

test.each([
  { on: ['requests', 'answer'] },
  { on: [] },
  { on: 'request' },
  { kinds: ['text', 'tool-arguments'] },
  { kinds: [] },
])('options by which a text would pass unread are an error: %j', (options) => {
  expect(() => redact([pii.email], options as never)).toThrow(`redact: ${Object.keys(options)[0]} must be a list of`)
})

test('its version, which keys of a cache contain, changes with its rules, their flags and the kinds', () => {
  const rule = { name: 'word', pattern: /secret/, maxLength: 6 }
  const versions = [
    redact([rule]),
    redact([{ ...rule, pattern: /secret/i }]),
    redact([{ ...rule, pattern: /secrets/ }]),
    redact([rule], { kinds: ['text'] }),
  ].map(({ version }) => version)

  expect(new Set(versions).size).toBe(versions.length)
  expect(redact([rule]).version).toBe(versions[0])
})

test('an expression of the host that never ends fails the hook within its time', () => {
  const rule: RedactionRule = { name: 'x', pattern: /(?:a+)+b/, maxLength: 100 }
  const part = { id: 'x', kind: 'text', index: 0, text: 'a'.repeat(60), path: ['x'] } as const
  const call = { texts: () => [part] }

  expect(() => redact([rule]).request?.(call as never)).toThrow('took longer than 101 ms')
  expect(() => streamed([part.text], [rule])).toThrow('took longer than 101 ms')
  expect(streamed(['aab!'], [rule])).toBe('[X]!')
})

test('a rule may have a function in place of an expression', () => {
  const rule: RedactionRule = { name: 'end', find: (text) => [[text.length - 2, text.length]], maxLength: 2 }
  expect(streamed(['abcd'], [rule])).toBe('ab[END]')
})
