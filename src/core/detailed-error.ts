import { type ErrorCode, GatewayError, type GatewayErrorDetails } from './errors.ts'

/** Facts by which clients of a dialect recover by themselves, such as a code. They hold no secrets. */
export type ErrorFacts = Readonly<Record<string, unknown>>

/** An error with facts, which are shown if the caller's dialect has a field for them. Apart, since clients never make one. */
export class DetailedError extends GatewayError {
  readonly facts: ErrorFacts

  constructor(code: ErrorCode, details: GatewayErrorDetails, facts: ErrorFacts) {
    super(code, details)
    this.facts = facts
  }
}
