import { videoFaults } from '../answer-faults.mjs'
import { videoHold } from '../costs.mjs'
import { videoRequest } from '../requests.mjs'
import { cpuScenario } from './cpu-scenario.mjs'

const MODEL = 'bench-video'

/**
 * Every submission leaves an open task behind, as it does until a video is rendered, so their number is bounded: a run of any
 * length would measure the collection of a heap that no gateway has.
 */
export const scenario = cpuScenario({
  name: 'video-submit',
  title: 'video submission, 32 connections',
  per: 'request',
  load: { connections: 32, answersPerConnection: 250 },
  costNanoDollars: videoHold(5),
  isHolding: true,
  target: 2,
  goal: 1.6,
  request: () => videoRequest(MODEL),
  faultsOf: (answer, proxy) => videoFaults(answer, { proxy, model: MODEL }),
})
