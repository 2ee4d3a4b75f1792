import { expect, test } from 'vitest'
import { runningSandbox } from './support/running-sandbox.ts'

const vendor = runningSandbox()
const embed = (body: object, headers?: Record<string, string>) =>
  vendor.post('/v1/embeddings', { model: 'voyage-4', input: 'red', ...body }, headers)

test('answers in its own shape: total tokens only, floats or base64 of the same values', async () => {
  const floats = await embed({ output_dimension: 256 })
  const encoded = await embed({ output_dimension: 256, encoding_format: 'base64' })

  const bytes = Buffer.from(encoded.json.data[0].embedding, 'base64')
  const decoded = Array.from({ length: 256 }, (_, position) => bytes.readFloatLE(position * 4))
  expect(floats.json.data[0].embedding).toEqual(decoded)
  expect(floats.json).toMatchObject({ object: 'list', model: 'voyage-4', usage: { total_tokens: 1 } })
  expect(vendor.sandbox.requests.map((call) => call.vendor)).toEqual(['voyage', 'voyage'])
})

test.each<[string, object, RegExp]>([
  ['float by name', { encoding_format: 'float' }, /encoding_format/],
  ['dimensions', { dimensions: 256 }, /'dimensions'/],
  ['user', { user: 'u1' }, /'user'/],
  ['a size it does not have', { output_dimension: 300 }, /output_dimension/],
  ['more than a thousand texts', { input: Array(1001).fill('x') }, /1000/],
  ['more tokens than a batch may have', { model: 'voyage-4-large', input: 'x'.repeat(480_004) }, /max allowed tokens/],
])('refuses %s', async (_, body, detail) => {
  const answer = await embed(body)

  expect(answer.status).toBe(400)
  expect(answer.json.detail).toMatch(detail)
})

test('looks at the arguments before the key', async () => {
  const badArgument = await embed({ user: 'u1' }, {})
  const withoutKey = await embed({}, {})

  expect([badArgument.status, withoutKey.status]).toEqual([400, 401])
})
