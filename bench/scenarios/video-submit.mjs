import { videoFaults } from '../answer-faults.mjs'
import { videoHold } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { videoRequest } from '../requests.mjs'

const MODEL = 'bench-video'

/**
 * Every submission leaves an open task behind, as it does until a video is rendered, so their number is bounded: a run of any
 * length would measure the collection of a heap that no gateway has.
 */
export const scenario = {
  name: 'video-submit',
  title: 'video submission, 32 connections',
  unit: 'CPU µs/request',
  measurement: load,
  load: { connections: 32, answersPerConnection: 250 },
  unitsPerAnswer: 1,
  costNanoDollars: videoHold(5),
  isHolding: true,
  headline: 'cpuMicroseconds',
  comparison: 'ratio',
  target: 1.6,
  goal: 1.6,
  request: () => videoRequest(MODEL),
  faultsOf: (answer, proxy) => videoFaults(answer, { proxy, model: MODEL }),
}
