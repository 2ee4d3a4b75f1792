import { VIDEO_MODELS } from '../../catalog/models/video-models.ts'
import type { VideoIntent, VideoModelFacts, VideoReference } from '../../endpoints/videos/video-protocol.ts'
import { buildBody, videoProtocolOf } from '../../endpoints/videos/video-protocols.ts'
import { referenceKind } from '../../endpoints/videos/video-references.ts'
import { mediaAddresses, type VideoRequest } from '../../endpoints/videos/video-request.ts'
import type { ModelId } from '../models/model-request.ts'
import type { VideoModels } from '../models/video-models.ts'
import { builderFault, Draft } from './draft.ts'
import { knownModel } from './known-model.ts'
import type { VideoBuilder } from './video-steps.ts'

/** API specification, "Video generation request": what is made when the request does not say. */
const DEFAULT_RESOLUTION = '720p'
const DEFAULT_SECONDS = 5

/**
 * Begins a video request, which is written in the layout of the model: the same steps give different bodies for a 2.6 and a
 * 2.7 model, and the fields at the top always agree with `parameters`.
 * @param facts layout and abilities of a model that the package does not know, as its row in the gateway has them.
 */
export function video<const Model extends ModelId<VideoModels>>(
  model: Model,
  facts?: Omit<VideoModelFacts, 'id'>,
): VideoBuilder<Model> {
  const known = facts ?? knownModel(VIDEO_MODELS, model)
  const { protocol, video: abilities } = known ?? {}
  const draft = new VideoDraft({
    model: {
      id: model,
      ...(protocol === undefined ? {} : { protocol }),
      ...(abilities === undefined ? {} : { video: abilities }),
    },
    intent: { resolution: DEFAULT_RESOLUTION, seconds: DEFAULT_SECONDS },
  })
  // It has every step; the type shows those of the model.
  return draft as never
}

interface State {
  readonly model: VideoModelFacts
  readonly intent: VideoIntent
  readonly webhookUrl?: string
}

class VideoDraft extends Draft<State> {
  prompt(prompt: string): this {
    return this.#mean({ prompt })
  }
  negativePrompt(negativePrompt: string): this {
    return this.#mean({ negativePrompt })
  }
  tier(resolution: string): this {
    return this.#mean({ resolution })
  }
  seconds(seconds: number): this {
    if (!Number.isInteger(seconds)) throw builderFault('seconds', 'must be a whole number')
    return this.#mean({ seconds })
  }
  aspectRatio(aspectRatio: string): this {
    return this.#mean({ aspectRatio })
  }
  seed(seed: number): this {
    return this.#mean({ seed })
  }
  watermark(isOn = true): this {
    return this.#mean({ watermark: isOn })
  }
  promptExtend(isOn = true): this {
    return this.#mean({ promptExtend: isOn })
  }
  audio(url: string): this {
    return this.#mean({ audio: url })
  }
  firstFrame(url: string): this {
    return this.#mean({ firstFrame: url })
  }
  lastFrame(url: string): this {
    return this.#mean({ lastFrame: url })
  }
  firstClip(url: string): this {
    return this.#mean({ firstClip: url })
  }
  shots(shotType: string): this {
    return this.#mean({ shotType })
  }
  mute(): this {
    return this.#mean({ mute: true })
  }
  reference(url: string, { kind = referenceKind(url), voice }: Partial<Omit<VideoReference, 'url'>> = {}): this {
    const { references = [] } = this.state.intent
    if (kind === undefined) {
      throw builderFault(`references[${references.length}]`, 'its name does not tell; give kind: image or video')
    }
    return this.#mean({ references: [...references, { kind, url, ...(voice === undefined ? {} : { voice }) }] })
  }
  webhook(webhookUrl: string): this {
    if (!/^https?:\/\//i.test(webhookUrl) || !URL.canParse(webhookUrl)) {
      throw builderFault('webhook_url', 'must be an http(s) URL')
    }
    return this.with({ webhookUrl })
  }
  build(): VideoRequest {
    const { model, intent, webhookUrl } = this.state
    const body = buildBody(intent, model)
    videoProtocolOf(model).check(body, model)
    mediaAddresses(body.input)
    return webhookUrl === undefined ? body : { ...body, webhook_url: webhookUrl }
  }

  #mean(change: Partial<VideoIntent>): this {
    return this.with({ intent: { ...this.state.intent, ...change } })
  }
}
