import { joinChunks } from '../../wire/chunks.ts'
import {
  type AcceptedTask,
  neverStreams,
  type Operation,
  type VendorCall,
  type WireAnswer,
  type WireRequest,
} from '../operation.ts'
import type { TaskOperation } from '../task.ts'
import type { VideoRequest } from './video-request.ts'

/** Video at one vendor: submitted, then polled. All functions are pure. */
export interface VideoOperation extends TaskOperation {
  /** @throws GatewayError `invalid_request` naming the field if the body does not fit the model's protocol. */
  toWire(call: VendorCall<VideoRequest>): WireRequest
  /** Reads a 2xx answer to a submission. Returns `undefined` if it is malformed. */
  accepted(answer: WireAnswer): AcceptedTask | undefined
}

/** Part of a vendor that handles video. */
export interface VideosOffer {
  readonly videos?: VideoOperation
}

/** Creates the submission of a video at a vendor. Its answer is a task. */
export function createVideoOperation(videos: VideoOperation, call: VendorCall<VideoRequest>): Operation {
  return {
    requests: [videos.toWire(call)],
    whole([answer]) {
      const task = answer && videos.accepted({ ...answer, body: joinChunks(answer.chunks) })
      return task && { chunks: [], usage: undefined, task }
    },
    stream: neverStreams,
  }
}
