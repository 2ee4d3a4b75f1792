import { joinChunks } from '../../wire/join-chunks.ts'
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
  /** @throws GatewayError `invalid_request` naming the field when the body does not fit the model's protocol. */
  toWire(call: VendorCall<VideoRequest>): WireRequest
  /** Reads a 2xx answer to a submission. Undefined if it is malformed. */
  accepted(answer: WireAnswer): AcceptedTask | undefined
}

/** What of a vendor carries out video. */
export interface VideosOffer {
  readonly videos?: VideoOperation
}

/** The submission of a video at a vendor: its answer is a task. */
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
