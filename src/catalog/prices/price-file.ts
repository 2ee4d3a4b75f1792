import * as z from 'zod'
import { checkMembers, schemaError } from '../../core/known-members.ts'
import { parseDecimal } from '../../core/money.ts'
import { whileUsed } from '../../core/on-demand.ts'
import { METERS, METERS_WITH_MINIMUM, type Meter } from './rate.ts'

/** Row of a price list. */
export interface PriceRow {
  /** Public id of the model. A pattern with one `*` applies to every matching id without a row of its own. */
  readonly model: string
  readonly meter: Meter
  /** Dollars for `per` units, as a decimal string: `"3.00"`. `"0"` means free. */
  readonly amount: string
  /** Number of units that `amount` buys. Default 1. */
  readonly per?: number | undefined
  /**
   * Minimum number of units charged for a call that uses any: `10` for a vendor that bills at least ten seconds. Allowed for
   * `image`, `video_second`, `audio_second`, `character` and `search_unit`.
   */
  readonly minimum?: number | undefined
  /** Conditions of the row, all of which must match: `{ resolution: '1080p' }`. If omitted, the row always applies. */
  readonly when?: PriceConditions | undefined
}

/** Conditions of a price: billing fields and their values, and the size of the prompt. */
export interface PriceConditions {
  /** Number of input tokens, as counted by the vendor, that a call must exceed. The price then applies to all tokens of the call. */
  readonly inputTokensAbove?: number | undefined
  readonly [field: string]: string | number | undefined
}

/** Price list in the format of `createGateway({ prices })` and of a price file. */
export interface PriceFile {
  /** Always `USD`. */
  readonly currency: 'USD'
  /** Rows, checked when the gateway is created; an error names row and field. */
  readonly prices: readonly PriceRow[]
  /** Comment for readers, without effect. */
  readonly comment?: string | undefined
}

const LARGEST_UNIT_COUNT = 1_000_000_000_000

const priceRow = whileUsed(() =>
  z
    .strictObject({
      model: z.string().min(1, 'must not be empty'),
      meter: z.enum(METERS, {
        error: (issue) => `unknown meter ${JSON.stringify(issue.input)}; the meters are ${METERS.join(', ')}`,
      }),
      amount: z
        .string('must be a decimal string, such as "3.00"')
        .refine(isDecimal, 'must be a decimal string, such as "3.00"'),
      per: z.int().min(1).max(LARGEST_UNIT_COUNT).optional(),
      minimum: z.number().positive().max(LARGEST_UNIT_COUNT).optional(),
      when: z
        .record(
          z.string().regex(/^(?:inputTokensAbove|[a-z][a-z0-9_]*)$/, 'must be a billing field in snake_case'),
          z.union([z.string().min(1), z.int().min(1)]),
        )
        .check(({ value, issues }) => {
          for (const [name, condition] of Object.entries(value)) {
            if ((name === 'inputTokensAbove') === (typeof condition === 'number')) continue
            const message = name === 'inputTokensAbove' ? 'must be a whole number of tokens' : 'must be a string'
            issues.push({ code: 'custom', path: [name], message, input: condition })
          }
        })
        .optional(),
    })
    .check(({ value, issues }) => {
      if (value.minimum === undefined || METERS_WITH_MINIMUM.includes(value.meter)) return
      const message = `only prices of ${METERS_WITH_MINIMUM.join(', ')} have a minimum`
      issues.push({ code: 'custom', path: ['minimum'], message, input: value.minimum })
    }),
)

const priceFile = whileUsed(() =>
  z.strictObject({
    currency: z.literal('USD'),
    prices: z.array(z.unknown()),
    comment: z.string().optional(),
  }),
)

/** Shape of a price file, for its schema. {@link checkPriceFile} reports faults row by row. */
export const wholePriceFile = whileUsed(() => z.strictObject({ ...priceFile().shape, prices: z.array(priceRow()) }))

/**
 * Checks the shape of a price list. `definePrices` checks whether its rows are consistent.
 * @throws TypeError with the first unknown member, otherwise with index and field of every fault: `prices[3].amount: …`.
 */
export function checkPriceFile(file: unknown): PriceFile {
  if (typeof file !== 'object' || file === null || Array.isArray(file))
    throw new TypeError(`prices: expected { currency: 'USD', prices: [...] }, not ${described(file)}`)
  checkNames(file)
  const outer = priceFile().safeParse(file)
  if (!outer.success) throw schemaError('', outer.error.issues)
  const rows = z.array(priceRow()).safeParse(outer.data.prices)
  if (!rows.success) throw schemaError('prices', rows.error.issues)
  return { currency: outer.data.currency, prices: rows.data, comment: outer.data.comment }
}

function described(file: unknown): string {
  if (Array.isArray(file)) return 'a list of rows'
  return typeof file === 'function' ? `a function; call it: ${file.name}()` : String(file)
}

function checkNames(file: object): void {
  checkMembers(file, priceFile().shape, 'prices')
  const { prices } = file as Partial<PriceFile>
  if (!Array.isArray(prices)) return
  for (const [index, row] of prices.entries())
    if (typeof row === 'object') checkMembers(row, priceRow().shape, '', `prices[${index}]`)
}

function isDecimal(text: string): boolean {
  try {
    parseDecimal(text)
    return true
  } catch {
    return false
  }
}
