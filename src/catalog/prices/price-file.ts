import * as z from 'zod'
import { checkMembers, type MemberNames } from '../../core/known-members.ts'
import { parseDecimal } from '../../core/money.ts'
import { onDemand } from '../../core/on-demand.ts'
import { configurationError } from '../configuration-error.ts'
import { METERS, METERS_WITH_MINIMUM, type Meter } from './rate.ts'

/** One price. */
export interface PriceRow {
  /** Public id of the model. With one `*` in it: every model whose id matches and that has no row of its own. */
  readonly model: string
  readonly meter: Meter
  /** Dollars for `per` units, as a decimal string: `"3.00"`. `"0"` is a price: free. */
  readonly amount: string
  /** Units that `amount` buys; 1 when absent. */
  readonly per?: number | undefined
  /**
   * Least units for which a call that has some is charged: `10` for a vendor that bills at least ten seconds. Only of `image`,
   * `video_second`, `audio_second`, `character`, `search_unit`.
   */
  readonly minimum?: number | undefined
  /** What the row holds for, all of it: `{ resolution: '1080p' }`. Absent: always. */
  readonly when?: PriceConditions | undefined
}

const PRICE_ROW_MEMBERS = {
  model: true,
  meter: true,
  amount: true,
  per: true,
  minimum: true,
  when: true,
} satisfies MemberNames<PriceRow>

/** Conditions of a price: billing fields and their values, and the size of the prompt. */
export interface PriceConditions {
  /** Only for calls whose vendor counted more input tokens than this; then for all tokens of the call. */
  readonly inputTokensAbove?: number | undefined
  readonly [field: string]: string | number | undefined
}

/** A price list, as `createGateway({ prices })` takes it and a price file holds it. */
export interface PriceFile {
  /** `USD`: there is no other. */
  readonly currency: 'USD'
  /** Checked when the gateway is made; an error names row and field. */
  readonly prices: readonly PriceRow[]
  /** For people. */
  readonly comment?: string | undefined
}

const PRICE_FILE_MEMBERS = {
  currency: true,
  prices: true,
  comment: true,
} satisfies MemberNames<PriceFile>

const LARGEST_UNIT_COUNT = 1_000_000_000_000

const priceRow = onDemand(() =>
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

const priceFile = onDemand(() =>
  z.strictObject({
    currency: z.literal('USD'),
    prices: z.array(z.unknown()),
    comment: z.string().optional(),
  }),
)

/** The shape of a price file, for its schema; {@link checkPriceFile} tells faults row by row. */
export const wholePriceFile = onDemand(() => z.strictObject({ ...priceFile().shape, prices: z.array(priceRow()) }))

/**
 * Checks the shape of a price list; what its rows mean together is for `definePrices` to judge.
 * @throws TypeError naming the first unknown member, else the index and field of every fault: `prices[3].amount: …`.
 */
export function checkPriceFile(file: unknown): PriceFile {
  if (typeof file !== 'object' || file === null || Array.isArray(file))
    throw new TypeError(`prices: expected { currency: 'USD', prices: [...] }, not ${described(file)}`)
  checkNames(file)
  const outer = priceFile().safeParse(file)
  if (!outer.success) throw configurationError('', outer.error.issues)
  const rows = z.array(priceRow()).safeParse(outer.data.prices)
  if (!rows.success) throw configurationError('prices', rows.error.issues)
  return { currency: outer.data.currency, prices: rows.data, comment: outer.data.comment }
}

function described(file: unknown): string {
  if (Array.isArray(file)) return 'a list of rows'
  return typeof file === 'function' ? `a function; call it: ${file.name}()` : String(file)
}

function checkNames(file: object): void {
  checkMembers(file, PRICE_FILE_MEMBERS, 'prices')
  const { prices } = file as Partial<PriceFile>
  if (!Array.isArray(prices)) return
  for (const [index, row] of prices.entries())
    if (typeof row === 'object') checkMembers(row, PRICE_ROW_MEMBERS, '', `prices[${index}]`)
}

function isDecimal(text: string): boolean {
  try {
    parseDecimal(text)
    return true
  } catch {
    return false
  }
}
