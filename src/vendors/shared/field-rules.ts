import { changesNothing } from '../../endpoints/neutral-values.ts'

/** Treatment of a request field at a vendor of the same dialect. */
export type FieldRule<Request> = 'pass' | 'drop' | FieldMapping<Request>

/** A field that is sent under another name or with another value. */
export interface FieldMapping<Request> {
  /** Whether this value must change. Called only if the field is present. */
  readonly needed: (value: unknown, request: Request) => boolean
  /** Changes a shallow copy of the request. Nested values belong to the caller and must be replaced, not edited. */
  readonly apply: (body: Record<string, unknown>, value: unknown) => void
  /** Returns the names of lost fields, for the caller. If omitted, nothing is lost. */
  readonly losses?: (value: unknown, request: Request) => readonly string[]
}

/** A rule for each field that a vendor treats specially. Fields without a rule are passed on. */
export type FieldRules<Request> = Readonly<Record<string, FieldRule<Request>>>

/** The request in the form that the vendor accepts. */
export interface RuledBody {
  /** Undefined if every field is passed on, so that the caller's bytes can be sent unchanged. */
  readonly body: Record<string, unknown> | undefined
  /** Fields set by the caller that the vendor does not support. */
  readonly dropped: readonly string[]
}

const NOTHING_DROPPED: readonly string[] = []

/**
 * Applies a vendor's table to a request, which is never changed itself.
 * @param isNeutral Whether a value has the same effect as none, so that its loss is not reported.
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
