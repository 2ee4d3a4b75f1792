import { changesNothing } from '../../endpoints/neutral-values.ts'

/** What becomes of one request field on the way to a vendor of the same dialect. */
export type FieldRule<Request> = 'pass' | 'drop' | FieldMapping<Request>

/** A field that goes over under another name or with another value. */
export interface FieldMapping<Request> {
  /** Must this value change? Asked only when the field is present. */
  readonly needed: (value: unknown, request: Request) => boolean
  /** Makes the change in a shallow copy of the request; nested values belong to the caller and are replaced, not edited. */
  readonly apply: (body: Record<string, unknown>, value: unknown) => void
  /** Names of what the change loses, for the caller. Absent: it loses nothing. */
  readonly losses?: (value: unknown, request: Request) => readonly string[]
}

/** A rule for each field that a vendor treats specially. Fields without a rule pass. */
export type FieldRules<Request> = Readonly<Record<string, FieldRule<Request>>>

/** The request as the vendor takes it. */
export interface RuledBody {
  /** Undefined when every field passes, so that the caller's bytes can be sent as they are. */
  readonly body: Record<string, unknown> | undefined
  /** Fields that the vendor lacks and the caller had set. */
  readonly dropped: readonly string[]
}

const NOTHING_DROPPED: readonly string[] = []

/**
 * Applies a vendor's table to a request. The request itself is never written to.
 * @param isNeutral Does a value mean the same as none, so that its loss is not reported?
 */
export function applyFieldRules<Request extends object>(
  request: Request,
  rules: FieldRules<Request>,
  isNeutral: (field: string, value: unknown) => boolean = changesNothing,
): RuledBody {
  const values = request as Readonly<Record<string, unknown>>
  let body: Record<string, unknown> | undefined
  let dropped: string[] | undefined
  for (const field in rules) {
    const value = values[field]
    const rule = rules[field]
    if (value === undefined || rule === undefined || rule === 'pass') continue
    if (rule === 'drop') {
      body ??= { ...values }
      delete body[field]
      // null means "not set" in this dialect, so the member is removed.
      if (value !== null && !isNeutral(field, value)) {
        dropped ??= []
        dropped.push(field)
      }
    } else if (rule.needed(value, request)) {
      body ??= { ...values }
      rule.apply(body, value)
      const losses = rule.losses?.(value, request) ?? NOTHING_DROPPED
      if (losses.length > 0) dropped = [...(dropped ?? []), ...losses]
    }
  }
  return { body, dropped: dropped ?? NOTHING_DROPPED }
}
