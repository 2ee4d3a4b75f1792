import { isJsonObject } from '../../../core/json.ts'
import { asObject, asText, isGiven } from '../model/loose-json.ts'
import { RefusedCall } from '../sandbox-operation.ts'
import { DASHSCOPE_NATIVE_ERRORS, refuseNative } from './dashscope-native-errors.ts'
import { checkVideoMedia, hasReferenceVideo } from './dashscope-videos-media.ts'
import { type DashScopeVideoRules, type VideoSize, videoRulesOf, videoSizeOf } from './dashscope-videos-rules.ts'

const LARGEST_SEED = 2 ** 31 - 1
const DEFAULT_SECONDS = 5
const SHOT_TYPES: readonly unknown[] = ['single', 'multi']

/** A request that the vendor takes. */
export interface CheckedVideoRequest {
  readonly model: string
  readonly rules: DashScopeVideoRules
  readonly size: VideoSize
  /** Seconds that were asked for. */
  readonly seconds: number
}

/**
 * Reads a request for a video as the vendor does (DashScope, Wan API references and error codes page). Fields that the model
 * does not read are passed over.
 * @param canResolve The call carries the header that `oss://` addresses need.
 * @throws RefusedCall when the vendor would answer with an error.
 */
export function checkedVideoRequest(body: unknown, canResolve: boolean): CheckedVideoRequest {
  const { model: name, input, parameters } = asObject(body)
  const model = asText(name)
  if (model === '') refuseNative('Required parameter "model" missing from request.', 'BadRequest.EmptyModel')
  const rules = videoRulesOf(model)
  if (rules === undefined) throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(404))
  if (!isJsonObject(input)) refuseNative('Required input parameter missing from request.', 'BadRequest.EmptyInput')
  if (isGiven(parameters) && !isJsonObject(parameters)) refuseNative('Input should be a valid object: parameters')
  checkVideoMedia(body, rules, canResolve)
  checkPrompts(input, rules)
  checkSettings(asObject(parameters), rules)
  const durations = hasReferenceVideo(body) ? rules.durationsWithVideo : rules.durations
  return { model, rules, size: checkedSize(body, rules), seconds: checkedSeconds(asObject(parameters), durations) }
}

function checkPrompts(input: Readonly<Record<string, unknown>>, rules: DashScopeVideoRules): void {
  for (const name of ['prompt', 'negative_prompt']) {
    if (isGiven(input[name]) && typeof input[name] !== 'string') {
      refuseNative(`Input should be a valid string: input.${name}`)
    }
  }
  if (rules.kind !== 'i2v' && asText(input['prompt']) === '') refuseNative('Field required: input.prompt')
}

function checkSettings(parameters: Readonly<Record<string, unknown>>, rules: DashScopeVideoRules): void {
  for (const name of ['watermark', 'prompt_extend', ...(rules.protocol === 'legacy' ? ['audio'] : [])]) {
    const value = parameters[name]
    if (isGiven(value) && typeof value !== 'boolean') {
      refuseNative(`Input should be a valid boolean: parameters.${name}`)
    }
  }
  const { seed, shot_type: shotType } = parameters
  if (isGiven(seed) && !(Number.isInteger(seed) && Number(seed) >= 0 && Number(seed) <= LARGEST_SEED)) {
    refuseNative(`seed must be in [0, ${LARGEST_SEED}]: parameters.seed`)
  }
  if (rules.takesShots && isGiven(shotType) && !SHOT_TYPES.includes(shotType)) {
    refuseNative("Input should be 'single' or 'multi': parameters.shot_type")
  }
}

function checkedSeconds(parameters: Readonly<Record<string, unknown>>, durations: readonly number[]): number {
  const duration = parameters['duration'] ?? DEFAULT_SECONDS
  if (typeof duration !== 'number' || !Number.isInteger(duration)) {
    refuseNative('Input should be a valid integer: parameters.duration')
  }
  if (!durations.includes(duration)) refuseNative(`duration must be one of ${durations}: parameters.duration`)
  return duration
}

function checkedSize(body: unknown, rules: DashScopeVideoRules): VideoSize {
  const size = videoSizeOf(body, rules)
  if (size !== undefined) return size
  const { size: pixels, resolution, ratio } = asObject(asObject(body)['parameters'])
  if (rules.protocol === 'legacy' && rules.kind !== 'i2v') {
    return refuseNative(`size ${String(pixels)} is not supported: parameters.size`)
  }
  if (!rules.tiers.some((lines) => (resolution ?? '1080P') === `${lines}P`)) {
    return refuseNative(`resolution ${String(resolution)} is not supported: parameters.resolution`)
  }
  return refuseNative(`ratio ${String(ratio)} is not supported: parameters.ratio`)
}
