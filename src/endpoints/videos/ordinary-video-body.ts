import { isJsonObject } from '../../core/json.ts'
import { isGiven } from './video-fault.ts'
import { MAX_ASPECT_RATIO_LENGTH, MAX_VIDEO_SECONDS } from './video-schema.ts'

/**
 * True for a body whose top-level fields have the types and bounds of the schema, which is spared the walk through it. False
 * says nothing: the schema then judges, and names what is wrong. A test holds that nothing is ordinary that it refuses.
 */
export function isOrdinaryVideoBody(body: unknown): boolean {
  if (!isJsonObject(body)) return false
  const { model, duration, resolution, aspect_ratio, input, parameters, webhook_url } = body
  return (
    typeof model === 'string' &&
    model !== '' &&
    isMembers(input) &&
    (!isGiven(duration) || isSeconds(duration)) &&
    (!isGiven(resolution) || isTextWithin(resolution, 20)) &&
    (!isGiven(aspect_ratio) || isTextWithin(aspect_ratio, MAX_ASPECT_RATIO_LENGTH)) &&
    (!isGiven(parameters) || isMembers(parameters)) &&
    (!isGiven(webhook_url) || isTextWithin(webhook_url, 2048))
  )
}

/** An object as JSON makes it; of what else a host's code may hand over, the schema judges. */
function isMembers(value: unknown): boolean {
  return isJsonObject(value) && Object.getPrototypeOf(value) === Object.prototype
}

function isSeconds(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_VIDEO_SECONDS
}

function isTextWithin(value: unknown, maxLength: number): boolean {
  return typeof value === 'string' && value !== '' && value.length <= maxLength
}
