/**
 * A store gives the same outcome to the same id of a hold, so a request that reserves again does it by another id: `fitted` to what the
 * balance pays, or for `both` answers where a second one may be asked for.
 */
const FURTHER_HOLD = /_(?:fitted|both)$/

/** The id of a further hold of a request. */
export function furtherHoldId(requestId: string, purpose: 'fitted' | 'both'): string {
  return `${requestId}_${purpose}`
}

/** The request that a hold was made for. */
export function requestOfHold(holdId: string): string {
  return holdId.replace(FURTHER_HOLD, '')
}
