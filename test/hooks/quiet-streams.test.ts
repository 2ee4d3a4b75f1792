import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { chatEndpoint } from '../../src/endpoints/chat/chat-endpoint.ts'
import { messagesEndpoint } from '../../src/endpoints/messages/messages-endpoint.ts'
import type { Hook } from '../../src/hooks/hook.ts'
import { HookTable } from '../../src/hooks/hook-table.ts'
import { Redactor, redact } from '../../src/hooks/redact.ts'
import { pii, type RedactionRule } from '../../src/hooks/redaction-rules.ts'
import type { AnswerScreen } from '../../src/pipeline/hooks/hook-facts.ts'
import { ScreenedStream } from '../../src/pipeline/hooks/screened-stream.ts'
import type { StreamReceiver } from '../../src/pipeline/stream-call.ts'
import type { OpenStream } from '../../src/pipeline/vendor-response.ts'
import { fakeClock } from '../../src/testing/index.ts'

const ALL: readonly RedactionRule[] = Object.values(pii)

/** The same hook, which is asked about every text. */
function naive({ text, ...hook }: Hook): Hook {
  const { holdBack, holdAll = [], check } = text!
  return { ...hook, text: { holdBack, holdAll, check } }
}

type Dialect = typeof chatEndpoint | typeof messagesEndpoint

/** Returns the output of a stream that arrives in these reads. */
function screened(endpoint: Dialect, hook: Hook, reads: readonly Buffer[], hasEnd = true): string {
  const [compiled] = new HookTable([hook], [endpoint as never]).of(endpoint as never)!.answer!
  const reserved = { endpoint, requestId: 'r', principal: { accountId: 'a', keyId: 'k' }, body: { model: 'm' } }
  const candidate = { model: { id: 'm' }, vendor: { id: 'v' } }
  const context = { clock: fakeClock(), logger: console }
  const screen = { context, reserved, candidate, usage: undefined, jsonSchema: undefined } as unknown as AnswerScreen
  let receiver: StreamReceiver | undefined
  const inner = {
    transform: {},
    attach(given: StreamReceiver) {
      receiver = given
    },
    pause: () => undefined,
    resume: () => undefined,
    abort: () => undefined,
  } as unknown as OpenStream
  const stream = new ScreenedStream(inner, screen, { hooks: [compiled!], reader: endpoint.texts!.answer! })
  const out: Buffer[] = []
  const ends: string[] = []
  stream.attach({
    onBytes: (bytes) => void out.push(Buffer.from(bytes as Uint8Array)),
    onStreamEnd: ({ kind }) => void ends.push(kind),
  })
  for (const read of reads) receiver?.onBytes(read)
  if (hasEnd) receiver?.onStreamEnd({ kind: 'ended' })
  expect(ends).toEqual(hasEnd ? ['ended'] : [])
  return Buffer.concat(out).toString('utf8')
}

interface Piece {
  readonly index: number
  readonly kind: 'text' | 'reasoning'
  readonly text: string
}

const sse = (value: object, name?: string): string =>
  `${name ? `event: ${name}\n` : ''}data: ${JSON.stringify(value)}\n\n`

/** Streams of both dialects that say the same. */
const DIALECTS: readonly [string, Dialect, (pieces: readonly Piece[], padding: boolean) => string[]][] = [
  [
    'chat',
    chatEndpoint,
    (pieces, padding) => {
      const event = (index: number, delta: object, finish: string | null = null): string =>
        sse({
          ...{ id: 'c', object: 'chat.completion.chunk', created: 1 },
          choices: [{ index, delta, logprobs: null, finish_reason: finish }],
          ...(padding && { obfuscation: 'x'.repeat((index * 7) % 13) }),
        })
      const indexes = [...new Set(pieces.map(({ index }) => index))]
      return [
        ...indexes.map((index) => event(index, { role: 'assistant', content: '' })),
        ...pieces.map(({ index, kind, text }) =>
          event(index, { [kind === 'text' ? 'content' : 'reasoning_content']: text }),
        ),
        ...indexes.map((index) => event(index, {}, 'stop')),
        'data: [DONE]\n\n',
      ]
    },
  ],
  [
    'Messages',
    messagesEndpoint,
    (pieces) => {
      const events = [sse({ type: 'message_start', message: { id: 'm', content: [] } }, 'message_start')]
      const indexes = [...new Set(pieces.map(({ index }) => index))]
      for (const index of indexes)
        events.push(
          sse({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } }, 'content_block_start'),
        )
      for (const { index, kind, text } of pieces) {
        const delta = kind === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', thinking: text }
        events.push(sse({ type: 'content_block_delta', index, delta }, 'content_block_delta'))
      }
      for (const index of indexes) events.push(sse({ type: 'content_block_stop', index }, 'content_block_stop'))
      return [...events, sse({ type: 'message_stop' }, 'message_stop')]
    },
  ],
]

/** Returns each text that callers read. */
function textsOf(stream: string): Record<string, string> {
  const texts: Record<string, string> = {}
  // A text may contain U+2028, which `.` does not match.
  for (const [, json = ''] of stream.matchAll(/^data: (\{[^\n]*)$/gm)) {
    const { index, delta, choices } = JSON.parse(json)
    for (const choice of choices ?? (delta === undefined ? [] : [{ index, delta }]))
      for (const name of ['content', 'reasoning_content', 'text', 'thinking']) {
        const key = `${choice.index} ${name}`
        if (typeof choice.delta[name] === 'string') texts[key] = (texts[key] ?? '') + choice.delta[name]
      }
  }
  return texts
}

const SECRETS = [
  'jane.doe+news@mail.example.com',
  '4111 1111 1111 1111',
  'DE89 3704 0044 0532 0130 00',
  '078-05-1120',
  '+49 30 901820',
  '2001:db8:85a3::8a2e:370:7334',
  'AKIAIOSFODNN7EXAMPLE',
  'sk-proj-abcdefghijklmnop1234',
]

/** Prose, secrets and what is like them, cut anywhere. */
const pieces = fc
  .array(
    fc.record({
      index: fc.nat({ max: 2 }),
      kind: fc.constantFrom('text' as const, 'reasoning' as const),
      run: fc.array(
        fc.oneof(
          {
            weight: 3,
            arbitrary: fc.constantFrom(
              ' light air',
              'sky. ',
              'A word',
              '\n',
              '"quoted"',
              'größer ',
              '空气 ',
              '😀',
              '\\',
              ' ',
            ),
          },
          { weight: 2, arbitrary: fc.constantFrom(...SECRETS) },
          { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }) },
          { weight: 1, arbitrary: fc.string({ maxLength: 80 }) },
        ),
        { maxLength: 6 },
      ),
      cuts: fc.array(fc.nat({ max: 40 }), { maxLength: 8 }),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((runs) =>
    runs.flatMap(({ index, kind, run, cuts }): Piece[] => {
      const list: Piece[] = []
      let rest = run.join('')
      for (const cut of cuts) {
        // Half of a character is not text.
        const text = [...rest].slice(0, cut).join('')
        rest = rest.slice(text.length)
        list.push({ index, kind, text })
      }
      return [...list, { index, kind, text: rest }]
    }),
  )

/** Network reads with a number of events, or a few bytes. */
function readsOf(events: readonly string[], size: number): Buffer[] {
  if (size > 0)
    return events.flatMap((_, at) => (at % size === 0 ? [Buffer.from(events.slice(at, at + size).join(''))] : []))
  const bytes = Buffer.from(events.join(''))
  return Array.from({ length: Math.ceil(bytes.length / 37) }, (_, at) => bytes.subarray(at * 37, (at + 1) * 37))
}

describe.each(DIALECTS)('a stream of %s that is redacted', (_name, endpoint, written) => {
  test('says the same as one whose every text is searched', () => {
    fc.assert(
      fc.property(pieces, fc.nat({ max: 3 }), fc.boolean(), (list, size, padding) => {
        const reads = readsOf(written(list, padding), size)
        const quick = textsOf(screened(endpoint, redact(ALL) as Hook, reads))
        const slow = textsOf(screened(endpoint, naive(redact(ALL) as Hook), reads))

        expect(quick).toEqual(slow)
      }),
      { numRuns: 150 },
    )
  })

  test('is the bytes that came where nothing is found, texts that hold it back included', () => {
    const texts = ['The ', 'light', ' air', ' "sky"', '\n', 'größer', ' 空气', ' a\\b', ' 12 dogs', ' by', ' 5.']
    const list = texts.map((text) => ({ index: 0, kind: 'text' as const, text }))
    for (const size of [0, 1, 2, 3]) {
      const events = written(list, true)
      expect(screened(endpoint, redact([pii.email, pii.keys]) as Hook, readsOf(events, size))).toBe(events.join(''))
    }
  })

  test('waits no longer than the end of an event in which something may begin', () => {
    const list = ['It is ', 'light and ', 'airy'].map((text) => ({ index: 0, kind: 'text' as const, text }))
    const events = written(list, false).slice(0, -2)
    const cut = events.findIndex((event) => event.includes('airy'))
    const before = textsOf(screened(endpoint, redact(ALL) as Hook, readsOf(events.slice(0, cut + 1), 1), false))

    expect(Object.values(before).join('')).toBe('It is light and ')
  })
})

test.each(ALL.map((rule) => [rule.name, rule] as const))(
  'the rule %s names characters of all that it finds',
  (_name, rule) => {
    const redactor = new Redactor([rule])
    const found = SECRETS.filter((text) => redactor.all([{ kind: 'text', text }])[0] !== text)
    expect(found.length).toBeGreaterThan(0)
    for (const secret of found) expect(rule.containsOneOf?.test(secret)).toBe(true)
    expect(rule.containsOneOf).toBeDefined()
  },
)
