import type { ModelDefinition } from '../../catalog/model.ts'
import { invalidField } from '../../endpoints/field-errors.ts'

/** Unfinished request. Immutable: every step returns a new one, so a half-built request can be shared. */
export abstract class Draft<State extends object> {
  protected readonly state: State

  constructor(state: State) {
    this.state = state
  }

  /** Returns a copy of the draft with some of its state replaced. */
  protected with(change: Partial<State>): this {
    const SameDraft = this.constructor as new (state: State) => this
    return new SameDraft({ ...this.state, ...change })
  }
}

/** Checks that a text was given. @throws GatewayError `invalid_request` naming the field. */
export function required(param: string, text: string | undefined): string {
  if (text === undefined || text === '') throw invalidField(param, 'is required')
  return text
}

/** Checks a number against its bounds. @throws GatewayError `invalid_request` naming the field. */
export function within(param: string, value: number, [min, max]: readonly [number, number]): number {
  if (value >= min && value <= max) return value
  throw invalidField(param, `must be ${min} to ${max}`)
}

/** Returns the package's definition of a model, by its id or its vendor's id, or `undefined` for a model of the host. */
export function knownModel(id: string, ...lists: readonly (readonly ModelDefinition[])[]): ModelDefinition | undefined {
  const rows = lists.flat()
  return rows.find((row) => row.id === id) ?? rows.find((row) => row.aliases?.includes(id) === true)
}
