from extensions.policy.outage import OutageDetector


def failed(detector, *domains, now=1.0):
    for domain in domains:
        detector.record(domain, ok=False, network_failure=True, now=now)


def answered(detector, *domains):
    for domain in domains:
        detector.record(domain, ok=True, network_failure=False, now=0.0)


def test_all_hosts_at_once_is_our_own_network():
    """Hosts that answered fail together with no answer between: out, until any answer."""
    detector = OutageDetector()
    answered(detector, "a", "b", "c")
    failed(detector, "a", "a", "a")
    assert not detector.out(1.0)
    failed(detector, "b")
    assert detector.out(1.0)
    assert detector.out_since == 1.0
    answered(detector, "c")
    assert not detector.out(2.0)


def test_dead_names_are_no_witnesses():
    """Hosts that never answered prove nothing, however many of them fail."""
    detector = OutageDetector()
    answered(detector, "a")
    failed(detector, *[f"dead{i}.invalid" for i in range(50)])
    assert not detector.out(1.0)


def test_a_bad_status_is_an_answer():
    """A 503 came over the network, so the network works."""
    detector = OutageDetector()
    answered(detector, "a", "b")
    failed(detector, "a")
    detector.record("a", ok=False, network_failure=False, now=1.0)
    assert not detector.out(1.0)


def test_probes_become_rarer():
    """While out, probes wait twice as long each time, at most half a minute."""
    detector = OutageDetector()
    answered(detector, "a", "b")
    failed(detector, "a", "b")
    now, gaps = detector.next_probe_due, []
    for _ in range(12):
        detector.probed(now)
        gaps.append(detector.next_probe_due - now)
        now = detector.next_probe_due
    assert gaps == sorted(gaps)
    assert gaps[0] == 0.5
    assert gaps[-1] == 30.0


def test_memory_is_bounded():
    """A crawl over a million domains keeps a thousand witnesses."""
    detector = OutageDetector()
    answered(detector, *[str(i) for i in range(5000)])
    assert len(detector._answered) == 1024


def test_an_outage_is_not_believed_for_ever():
    """After a quarter of an hour the hosts are blamed, and must answer before they are witnesses again."""
    detector = OutageDetector()
    answered(detector, "a", "b")
    failed(detector, "a", "b", now=10.0)
    assert detector.out(900.0)
    assert not detector.out(911.0)
    failed(detector, "a", "b", now=912.0)
    assert not detector.out(912.0)
