import { imageEditFaults } from '../answer-faults.mjs'
import { heldBodies } from '../measurements/held-bodies.mjs'
import { imageEditRequest } from '../requests.mjs'
import { scenario as edits } from './edits.mjs'

/** The bodies are 2 MB in and 2 MB out; a request may need another 1 MB. */
export const scenario = {
  name: 'edits-memory',
  title: 'peak memory of one more image edit, 2 MB in and 2 MB out',
  unit: 'MB/request',
  measurement: heldBodies,
  single: edits,
  headline: 'peakMegabytes',
  comparison: 'absolute',
  target: 5,
  request: () => imageEditRequest('bench-edit-held'),
  faultsOf: imageEditFaults,
}
