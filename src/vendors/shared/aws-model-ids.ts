/** `arn:aws:…:inference-profile/eu.maker.model` and `arn:aws:…::foundation-model/maker.model`. */
const ARN = /^arn:aws[a-z-]*:[a-z-]+:[a-z0-9-]*:\d*:(?:inference-profile|foundation-model)\/(.+)$/

/** The group of regions that a profile spreads calls over: `eu.`, `us-gov.`, `global.`, in front of `maker.model`. */
const REGION_PREFIX = /^(?:[a-z]{2}|us-gov|apac|global)\.(?=[a-z0-9-]+\.)/

/** The id without the account and region of an ARN: that of a model or of a system's inference profile. */
export function profileId(modelId: string): string {
  return ARN.exec(modelId)?.[1] ?? modelId
}

/** The id without ARN and region prefix: `maker.model`. An application's own profile stays as it is. */
export function baseModelId(modelId: string): string {
  return profileId(modelId).replace(REGION_PREFIX, '')
}

/** The ids under which a public catalog may list a model, that of its price first. */
export function listedModelIds(modelId: string): readonly string[] {
  const profile = profileId(modelId)
  const base = baseModelId(modelId)
  return profile === base ? [profile] : [profile, base]
}
