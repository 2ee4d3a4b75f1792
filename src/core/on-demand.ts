/** Returns a function that creates a value at its first call and returns the same value afterwards. */
export function onDemand<Value extends object>(make: () => Value): () => Value {
  let made: Value | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** Returns a function like that of {@link onDemand}, whose value is released while nothing uses it, and created again then. */
export function whileUsed<Value extends object>(make: () => Value): () => Value {
  let made: WeakRef<Value> | undefined
  return () => {
    const known = made?.deref()
    if (known !== undefined) return known
    const value = make()
    made = new WeakRef(value)
    return value
  }
}
