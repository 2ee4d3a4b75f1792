import { type ErrorCode, GatewayError, type GatewayErrorDetails } from './errors.ts'

/** Facts, such as a code, that let clients of a dialect recover automatically. They contain no secrets. */
export type ErrorFacts = Readonly<Record<string, unknown>>

/** Error with facts for dialects that have a field for them. Separate from GatewayError because clients never create one. */
export class DetailedError extends GatewayError {
  readonly facts: ErrorFacts

  constructor(code: ErrorCode, details: GatewayErrorDetails, facts: ErrorFacts) {
    super(code, details)
    this.facts = facts
  }
}
