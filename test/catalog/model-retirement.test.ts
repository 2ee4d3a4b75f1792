import { describe, expect, test } from 'vitest'
import { noticeStartMs, retirementOf } from '../../src/catalog/catalog.ts'
import { defineModel, type ModelDefinition } from '../../src/catalog/model.ts'
import { parseModelDefinitions } from '../../src/catalog/parse-model-definitions.ts'
import { readVendorModel, type VendorModel } from '../../src/catalog/vendor-models/vendor-model.ts'

const DAYS: Readonly<Record<string, string>> = { 'a/old': '2026-12-31', 'b/old': '2027-01-15' }

/** A catalog that knows the days above, and one model without a day. */
const source = {
  facts(vendor: string, upstream: string): VendorModel | undefined {
    const day = DAYS[`${vendor}/${upstream}`]
    const known = readVendorModel(`${upstream}||c`)
    return day === undefined ? known : { ...known, retires: Date.parse(day) / 1000 }
  },
}
const row = (members: Partial<ModelDefinition> = {}) =>
  defineModel({ id: 'mine', kind: 'chat', vendor: 'a', upstream: 'old', ...members })

describe('retirementOf', () => {
  test.each([
    ['the day that the catalog knows of the vendor’s model', row(), '2026-12-31'],
    ['the day of the row before that of the catalog', row({ retires: '2027-03-01' }), '2027-03-01'],
    ['nothing for a model without a day', row({ upstream: 'new' }), undefined],
    [
      'the last day of several routes',
      row({ routes: [{ vendor: 'a' }, { vendor: 'b', upstream: 'old' }] }),
      '2027-01-15',
    ],
    [
      'nothing if one of the routes stays',
      row({ routes: [{ vendor: 'a' }, { vendor: 'b', upstream: 'new' }] }),
      undefined,
    ],
  ])('returns %s', (_title, model, day) => {
    expect(retirementOf(model, source)).toBe(day)
  })
})

test('noticeStartMs is 60 days before the day', () => {
  const near = (now: string) => Date.parse(now) >= noticeStartMs('2026-12-31')

  expect(near('2026-10-31T23:59:59Z')).toBe(false)
  expect(near('2026-11-01T00:00:00Z')).toBe(true)
  expect(near('2028-01-01T00:00:00Z')).toBe(true)
})

test.each(['2026-02-31', '2026-13-01', '2026', '31.12.2026', '2026-12-31T00:00:00Z', ''])(
  'rejects a row whose retires is %j, from code and from a file',
  (retires) => {
    expect(() => row({ retires })).toThrow(
      new RangeError(`retires of a model must be a date such as 2026-12-31: ${retires}`),
    )
    expect(() => parseModelDefinitions([{ id: 'm', kind: 'chat', vendor: 'a', retires }])).toThrow(
      'models[0].retires: must be a date such as 2026-12-31',
    )
  },
)

test('reads the day of a row from a file', () => {
  const [read] = parseModelDefinitions([{ id: 'm', kind: 'chat', vendor: 'a', retires: '2028-02-29' }])

  expect(read).toMatchObject({ retires: '2028-02-29' })
})
