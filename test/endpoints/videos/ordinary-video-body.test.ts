import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { isOrdinaryVideoBody } from '../../../src/endpoints/videos/ordinary-video-body.ts'
import { videoSchema } from '../../../src/endpoints/videos/video-schema.ts'

const text = (length: number) => 'x'.repeat(length)

/** Values at and beside the bounds of every field, and of other types. */
const anyValue = fc.constantFrom<unknown>(
  undefined,
  null,
  '',
  '720p',
  text(20),
  text(21),
  text(2048),
  text(2049),
  0,
  1,
  3600,
  3601,
  1.5,
  Number.NaN,
  2 ** 53,
  true,
  [],
  {},
  { seed: 1 },
  new Date(0),
  Object.create(null),
)
const FIELDS = [...Object.keys(videoSchema.shape), 'user']

describe('an ordinary video body', () => {
  test('is never one that the schema refuses', () => {
    let ordinary = 0
    fc.assert(
      fc.property(
        fc.record(Object.fromEntries(FIELDS.map((name) => [name, anyValue])), { requiredKeys: [] }),
        fc.boolean(),
        (drawn, isComplete) => {
          const body = isComplete ? { ...drawn, model: 'wv2.6-t2v', input: { prompt: 'x' } } : drawn
          if (!isOrdinaryVideoBody(body)) return
          ordinary += 1
          expect(videoSchema.safeParse(body).success).toBe(true)
        },
      ),
      { numRuns: 20_000 },
    )
    expect(ordinary).toBeGreaterThan(20)
  })

  it.each([
    ['the required fields alone', {}],
    [
      'every field',
      { duration: 5, resolution: '720p', aspect_ratio: '16:9', parameters: {}, webhook_url: 'https://a' },
    ],
    ['null for what is left out', { duration: null, resolution: null, parameters: null, webhook_url: null }],
    ['a field of no meaning here', { user: 'u1' }],
  ])('is one with %s', (_, fields) => {
    expect(isOrdinaryVideoBody({ model: 'wv2.6-t2v', input: { prompt: 'x' }, ...fields })).toBe(true)
  })

  it.each([[undefined], [null], ['text'], [[]], [{}], [{ model: 'wv2.6-t2v' }], [{ model: '', input: {} }]])(
    'is not %j',
    (body) => {
      expect(isOrdinaryVideoBody(body)).toBe(false)
    },
  )
})
