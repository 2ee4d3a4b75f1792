import * as z from 'zod'
import { GatewayError } from '../../core/errors.ts'
import { formatDollars } from '../../core/money.ts'
import type { SpendingCap } from '../../stores/principal.ts'
import type { RateLimits } from '../../stores/rate-limiter.ts'
import { momentOf, UsageQueryError } from '../../usage/usage-query.ts'

/** Decimal dollars. */
export const dollars = z.string().regex(/^-?\d{1,15}(?:\.\d{1,9})?$/, 'must be decimal dollars such as "2.50"')
/** Unix milliseconds. */
export const timeMs = z.number().int().min(0)
export const id = z.string().min(1).max(200)
/** Id that an operator assigns. */
export const newId = z.string().regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters')
/** Display text of one line. */
export const label = z
  .string()
  .max(200)
  .regex(/^\P{Cc}*$/u, 'must be one line')
export const reason = z.string().min(1).max(500)
/** Units by meter. */
export const usageCounts = z.record(z.string(), z.number())
export const periodLimit = z.strictObject({ amount: dollars, period: z.enum(['day', 'month']) })
export const rateLimits = z.strictObject({
  requests_per_minute: z.int().min(1).nullable().optional(),
  tokens_per_minute: z.int().min(1).nullable().optional(),
  concurrency: z.int().min(1).nullable().optional(),
})

/** Member of an object of the API: its schema, and how it is read from the source. */
type Field<Source, Value> = readonly [schema: z.ZodType<Value>, read: (source: Source) => Value]

/** Defines an object of the API. Returns its schema, and the function that writes the object of a source. */
export function defineObject<Source>() {
  return <Values extends object>(fields: { readonly [Member in keyof Values]: Field<Source, Values[Member]> }) => {
    type Shape = { readonly [Member in keyof Values]: z.ZodType<Values[Member]> }
    const members = Object.entries(fields) as [string, Field<Source, unknown>][]
    const shape = Object.fromEntries(members.map(([member, [schema]]) => [member, schema])) as unknown as Shape
    const write = (source: Source): Values =>
      Object.fromEntries(members.map(([member, [, read]]) => [member, read(source)])) as Values
    return { schema: z.strictObject(shape), write }
  }
}

/** Field that names the kind of an object. */
export function kind<const Name extends string>(name: Name): Field<unknown, Name> {
  return [z.literal(name), () => name]
}

/** Field of an amount. */
export function amount<Source>(read: (source: Source) => bigint): Field<Source, string> {
  return [dollars, (source) => formatDollars(read(source))]
}

/** Field of an amount that may be unset. */
export function optionalAmount<Source>(read: (source: Source) => bigint | undefined): Field<Source, string | null> {
  return [dollars.nullable(), (source) => dollarsOrNull(read(source))]
}

/** Field of a time in whole Unix milliseconds. */
export function time<Source>(read: (source: Source) => number): Field<Source, number> {
  return [timeMs, (source) => Math.floor(read(source))]
}

/** Field of a time that may be unset. */
export function optionalTime<Source>(
  read: (source: Source) => number | null | undefined,
): Field<Source, number | null> {
  return [timeMs.nullable(), (source) => wholeOrNull(read(source))]
}

function wholeOrNull(timeMs: number | null | undefined): number | null {
  return timeMs == null ? null : Math.floor(timeMs)
}

/** Field of a string. */
export function text<Source>(read: (source: Source) => string): Field<Source, string> {
  return [z.string(), read]
}

/** Field of a string that may be unset. */
export function optionalText<Source>(read: (source: Source) => string | undefined): Field<Source, string | null> {
  return [z.string().nullable(), (source) => read(source) ?? null]
}

/** Page of objects, with the start of the next one. */
export function listOfObjects<Item extends z.ZodType>(item: Item) {
  return z.strictObject({
    object: z.literal('list'),
    data: z.array(item),
    has_more: z.boolean(),
    /** Value of `after` for the next page. */
    next: z.string().nullable(),
  })
}

/** Builds a page in the format of the API. */
export function listObject<Item>(data: readonly Item[], next: string | undefined) {
  return { object: 'list' as const, data: [...data], has_more: next !== undefined, next: next ?? null }
}

/** Query parameters of every page. */
export const pageQuery = {
  after: z.string().min(1).max(500).optional(),
  limit: z
    .string()
    .regex(/^\d{1,4}$/, 'must be a whole number from 1 to 1000')
    .optional(),
}

/** Parses a number in a query. */
export function countOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}

/** Formats dollars, or returns null for an unset amount. */
export function dollarsOrNull(nanoDollars: bigint | undefined): string | null {
  return nanoDollars === undefined ? null : formatDollars(nanoDollars)
}

/** Formats a spending cap. */
export function capObject(cap: SpendingCap | undefined) {
  return cap === undefined ? null : { amount: formatDollars(cap.amount), period: cap.period }
}

/** Formats limits. */
export function limitsObject(limits: RateLimits | undefined) {
  if (limits === undefined) return null
  return {
    requests_per_minute: limits.requestsPerMinute ?? null,
    tokens_per_minute: limits.tokensPerMinute ?? null,
    concurrency: limits.concurrency ?? null,
  }
}

/** Time as Unix milliseconds, or as ISO 8601 text such as `2026-11-01`, which is UTC without a zone. */
export const moment = z.string().min(1).max(40)

/** Time in a body, where milliseconds may also be a number. */
export const bodyMoment = z.union([moment, z.int().min(0)])

/** Time as it was sent. */
type SentMoment = z.output<typeof bodyMoment>

/** Converts a time for `gateway.usage`, which accepts digits only as a number. */
export function momentText<Sent extends SentMoment | undefined>(sent: Sent): Sent | number {
  return typeof sent === 'string' && /^\d{1,15}$/.test(sent) ? Number(sent) : sent
}

/**
 * Returns a time in Unix milliseconds, or `undefined` for one that was not sent.
 * @throws GatewayError `invalid_request` naming the parameter.
 */
export function momentMs(param: string, sent: SentMoment | undefined): number | undefined {
  if (sent === undefined) return undefined
  try {
    return momentOf(param, momentText(sent))
  } catch (cause) {
    if (!(cause instanceof UsageQueryError)) throw cause
    throw new GatewayError('invalid_request', { message: cause.message, param, cause })
  }
}
