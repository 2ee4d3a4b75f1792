import type { ModelDefinition } from '../../catalog/model.ts'
import { invalidField } from '../../endpoints/field-errors.ts'

/** Steps of a builder, by name. Each returns the part of the state that it replaces. */
export type Steps<State> = Readonly<Record<string, (state: State, ...inputs: never[]) => Partial<State>>>

/**
 * Creates a builder. It is immutable: every step returns a new one, so a half-built request can be shared. It has all steps; its type
 * at the caller exposes only those of the model.
 * @param ends Functions that end the building, such as `build`.
 */
export function createBuilder<State extends object>(
  state: State,
  steps: Steps<State>,
  ends: Readonly<Record<string, (state: State) => unknown>>,
): never {
  const members = Object.entries(steps).map(([name, step]): [string, unknown] => [
    name,
    (...inputs: never[]): unknown => createBuilder({ ...state, ...step(state, ...inputs) }, steps, ends),
  ])
  for (const [name, end] of Object.entries(ends)) members.push([name, () => end(state)])
  return Object.fromEntries(members) as never
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
