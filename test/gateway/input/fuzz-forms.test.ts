import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readForm } from '../../../src/wire/form.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { EDITS, png } from '../images/image-requests.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
  await started.gateway.accounts.credit('acct_test', '1000000')
})
afterAll(() => started.close())

const BOUNDARY = 'a-boundary'
const FIELDS = [
  'n',
  'size',
  'quality',
  'model',
  'prompt',
  'mask',
  'image',
  'image[]',
  'stream',
  'user',
  'note',
  '',
  '__proto__',
]
const ODD = [
  ...[
    '"',
    '\\',
    '%0D%0A',
    '%22',
    '%00',
    '\u0000',
    '\r',
    '\n',
    '\r\nx-evil: 1',
    '\r\n\r\n',
    ';',
    "''",
    '\u2028',
    '\ud83d\ude00',
  ],
  ...['; filename="a"', '"; name="n', `\r\n--${BOUNDARY}`, `--${BOUNDARY}--`, '\u0085', 'é', '='],
]
const TYPES = [
  'image/png',
  'text/plain',
  'application/json',
  'text/plain; charset=utf-16',
  'multipart/mixed; boundary=b',
  '\u00ff',
]

const text = fc.oneof(
  fc.constantFrom(...FIELDS, ...ODD),
  fc.array(fc.constantFrom('a', 'n', ...ODD), { maxLength: 4 }).map((pieces) => pieces.join('')),
)
const bytes = fc.oneof(
  fc.constant(png(16)),
  fc.uint8Array({ maxLength: 40 }),
  fc.constantFrom('1', '10', 'true', 'high', '1024x1024', '\uFEFF1').map((value) => new TextEncoder().encode(value)),
)
/** Headers as careless clients, and careful attackers, write them. */
const head = fc.oneof(
  text.map((name) => `Content-Disposition: form-data; name="${name}"`),
  fc.tuple(text, text).map(([name, file]) => `Content-Disposition: form-data; name="${name}"; filename="${file}"`),
  fc.tuple(text, text).map(([name, file]) => `content-disposition: form-data; name=${name}; filename*=UTF-8''${file}`),
  text.map((value) => `content-disposition: ${value}`),
)
const type = fc.option(fc.oneof(fc.constantFrom(...TYPES), text), { nil: undefined })
const part = fc.record({ head, type, bytes })

const field = (name: string, value: string) => ({
  head: `content-disposition: form-data; name="${name}"`,
  type: undefined,
  bytes: new TextEncoder().encode(value),
})
const USUAL = [
  field('model', 'gp-image-2'),
  field('prompt', 'more light'),
  { head: 'content-disposition: form-data; name="image"; filename="a.png"', type: 'image/png', bytes: png(16) },
]

function written(parts: readonly { head: string; type: string | undefined; bytes: Uint8Array }[]): Buffer<ArrayBuffer> {
  const pieces = parts.flatMap((one) => [
    Buffer.from(`--${BOUNDARY}\r\n${one.head}${one.type === undefined ? '' : `\r\ncontent-type: ${one.type}`}\r\n\r\n`),
    Buffer.from(one.bytes),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)])
}

const isImage = (name: string | undefined): boolean => /^image(?:\[\d*\])?$/.test(name ?? '')

function isEmptyInput(part: Awaited<ReturnType<typeof readForm>>[number]): boolean {
  return (
    part.kind === 'file' &&
    part.filename === '' &&
    part.byteLength === 0 &&
    (part.name === 'mask' || isImage(part.name))
  )
}

test('an odd form is answered or refused with a 4xx, and what the vendor gets is the form that was read', async () => {
  const contentType = `multipart/form-data; boundary=${BOUNDARY}`
  let taken = 0
  const property = fc.asyncProperty(
    fc.array(part, { minLength: 1, maxLength: 3 }),
    fc.boolean(),
    async (odd, isFirst) => {
      const body = written(isFirst ? [...odd, ...USUAL] : [...USUAL, ...odd])
      const answer = await started.gateway.fetch(
        new Request(`http://gateway.test${EDITS}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': contentType },
          body,
        }),
      )
      const answered = await answer.text()
      expect(answer.status, answered).toBeLessThan(500)
      if (answer.status !== 200) return
      taken += 1
      const sent = started.sandbox.requests.at(-1)!
      // Browsers send an empty file without a name for an input that the user left empty. The vendor does not get it.
      const read = (await readForm(contentType, [body])).filter((one) => !isEmptyInput(one))
      const received = await readForm(String(sent.headers['content-type']), [sent.bytes])
      const outline = (form: Awaited<ReturnType<typeof readForm>>) => form.map((one) => [one.kind, one.name])
      const images = read.filter(({ name }) => isImage(name)).length
      // The vendor reads one image under `image` and several under `image[]`, whatever their caller wrote.
      const spelled = outline(read).map(([kind, name]) =>
        isImage(name) ? [kind, images > 1 ? 'image[]' : 'image'] : [kind, name],
      )
      const withoutQuality = (form: (string | undefined)[][]) => form.filter(([, name]) => name !== 'quality')

      expect(withoutQuality(outline(received))).toEqual(withoutQuality(spelled))
      // The same text may be in a value, after the blank line that ends the headers of a part.
      const [, boundary = ''] = /boundary=("?)([^";]+)\1/.exec(String(sent.headers['content-type']))?.slice(1) ?? []
      const parts = Buffer.from(sent.bytes).toString('latin1').split(`--${boundary}\r\n`)
      for (const part of parts) expect(part.slice(0, part.indexOf('\r\n\r\n'))).not.toMatch(/^x-evil/im)
      expect(parts.length).toBeGreaterThan(1)
    },
  )
  await fc.assert(property, { numRuns: 800 })

  // Were all refused, nothing would have been shown.
  expect(taken).toBeGreaterThan(40)
}, 60_000)
