import { GatewayError } from './errors.ts'

/** Maximum work for the schemas of one request, in units. The slowest units together take less than a tenth of a second. */
const MAX_SCHEMA_UNITS = 100_000

/** Number of characters that cost as much to copy as one member. */
const CHARACTERS_PER_UNIT = 32

/**
 * Budget of a translation for all schemas of a request together. Each step pays for the values that it visits, copies and writes,
 * so the budget limits both the time and the size of the result.
 */
export class WorkBudget {
  #left = MAX_SCHEMA_UNITS

  /**
   * Pays for a step.
   * @param param Member of the request that causes the work, such as `tools[3].function.parameters`.
   * @throws GatewayError `invalid_request` that names the member, if the budget is used up.
   */
  pay(units: number, param: string): void {
    this.#left -= units
    if (this.#left >= 0) return
    const message = `${param}: the schemas of this request are too large once their references and combinations are resolved. Send fewer or smaller schemas.`
    throw new GatewayError('invalid_request', { message, param })
  }

  /** Pays for text by its length. Throws like {@link pay}. */
  payForText(length: number, param: string): void {
    this.pay(length / CHARACTERS_PER_UNIT, param)
  }

  /** Pays for a JSON value, down to a number of levels: one unit for each member and entry, plus its text. Throws like {@link pay}. */
  payFor(value: unknown, param: string, levels = Number.POSITIVE_INFINITY): void {
    if (typeof value === 'string') this.payForText(value.length, param)
    if (levels === 0 || typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) {
      this.pay(value.length, param)
      for (const entry of value) this.payFor(entry, param, levels - 1)
    } else {
      for (const name in value) {
        this.pay(1 + name.length / CHARACTERS_PER_UNIT, param)
        this.payFor((value as Record<string, unknown>)[name], param, levels - 1)
      }
    }
  }
}
